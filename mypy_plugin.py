"""A plugin of mypy that checks the changes in `value.copy_with(name=…)` as fields of the value's class.

Mypy itself checks those of `dataclasses.replace`. Nothing checks those of `model_copy(update={…})`, which is
therefore an error.
"""

from collections.abc import Callable, Iterator

from mypy.nodes import ARG_NAMED_OPT, TypeInfo, Var
from mypy.plugin import MethodContext, MethodSigContext, Plugin
from mypy.typeops import map_type_from_supertype
from mypy.types import CallableType, FunctionLike, Instance, Type, get_proper_type


class CopyWith(Plugin):
    """Give `copy_with` of each model its own parameters."""

    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], FunctionLike] | None:
        """Return what makes the signature of a call of `copy_with`."""
        return _with_fields if fullname.endswith(".copy_with") else None

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        """Return what refuses a call of `model_copy`."""
        return _refused if fullname.endswith(".model_copy") else None


def _with_fields(context: MethodSigContext) -> FunctionLike:
    signature = context.default_signature
    owner = get_proper_type(context.type)
    if not isinstance(owner, Instance) or not isinstance(signature, CallableType):
        return signature
    fields = dict(_fields(owner.type))
    return signature.copy_modified(
        arg_types=list(fields.values()),
        arg_kinds=[ARG_NAMED_OPT] * len(fields),
        arg_names=list(fields),
    )


def _fields(model: TypeInfo) -> Iterator[tuple[str, Type]]:
    """Yield the name and type of each field, those of base classes first."""
    for base in reversed(model.mro):
        for name, symbol in base.names.items():
            field = symbol.node
            if isinstance(field, Var) and field.type and not field.is_classvar and not name.startswith("_"):
                yield name, map_type_from_supertype(field.type, model, base)


def _refused(context: MethodContext) -> Type:
    arguments = dict(zip(context.callee_arg_names, context.args, strict=True))
    if arguments["update"]:
        context.api.fail("model_copy(update=…) is not checked: use copy_with", context.context)
    return context.default_return_type


def plugin(_version: str) -> type[Plugin]:
    """Return the plugin, as mypy asks for it."""
    return CopyWith
