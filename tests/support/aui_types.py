"""The types of a message of AUI's task API, as version 2.0 of the client `@aui.io/aui-client` declares them.

Fields that the types do not have are refused, and null too: the types leave out what there is none of.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator

Objects = list[dict[str, Any]]
Groups = list[list[str]]


class _Typed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _holds_no_null(cls, value: Any) -> Any:
        if isinstance(value, dict) and (empty := [key for key, item in value.items() if item is None]):
            raise ValueError(f"null: {', '.join(empty)}")
        return value


def _type(name: str, /, *, optional: dict[str, Any] | None = None, **required: Any) -> Any:
    fields = {key: (kind, ...) for key, kind in required.items()}
    fields |= {key: (kind, None) for key, kind in (optional or {}).items()}
    return create_model(name, __base__=_Typed, **fields)


Latency = _type("LatencyMetadata", elapsed=float, optional={
    "unit": Literal["microsecond", "millisecond", "second", "minute"], "time_to_first_token": float,
})  # fmt: skip
Condition = _type("SimpleViewCondition", method=str, optional={
    "params": list[str], "entities": list[str], "sub_entities": list[str],
    "operation": Literal[
        "eq", "neq", "gt", "lt", "gte", "lte", "contains", "exist", "not_exist", "any_has_value",
        "all_has_value", "between", "eq_regex", "neq_regex",
    ],
    "value": str | float | bool | list[Any] | dict[str, Any], "target_param": str, "target_params": list[str],
    "filter": dict[str, Any],
})  # fmt: skip
ConditionResult = _type("TraceRuleConditionResult", condition=Condition, passed=bool)
Evaluation = _type(
    "TraceRuleTriggerEvaluation", code=str, triggered=bool, optional={"reason": list[ConditionResult]}
)
ACTIONS = Literal[
    "ADD_REQUIRED_PARAM", "ASK_A_QUESTION", "ASK_FOR_CONFIRMATION", "BLOCK", "PARTIAL_BLOCK", "TEXT",
    "BLOCK_AND_ACTIVATE_ANOTHER_TOOL", "ACTIVATE_SUB_TOOL", "INTEGRATION", "ACTIVATE_ANOTHER_TOOL",
]  # fmt: skip
STATUSES = Literal[
    "all_filled", "missing_required", "missing_optional", "missing_optional_ask_once",
    "missing_optional_and_required",
]  # fmt: skip
_OF_RULES = {
    "action": ACTIONS, "reason": str, "params_added": dict[str, Any], "excluded_entities": list[str],
    "code": str,
}  # fmt: skip
OtherRule = _type("TraceRuleBase", type=Literal["constraint", "success", "fail", "block"], optional=_OF_RULES)
MissingInfoRule = _type(
    "TraceRuleMissingInfo",
    type=Literal["missing_info"],
    optional={**_OF_RULES, "required_missing_params_by_group": Groups},
)
ConfirmationRule = _type("TraceRuleAskForConfirmation", type=Literal["confirmation"], optional={
    **_OF_RULES, "action": Literal["ASK_FOR_CONFIRMATION"], "confirmation_preview": Objects,
})  # fmt: skip
ParamsRule = _type("TraceRuleParamsMissing", type=Literal["required_param"], status=STATUSES, optional={
    "action": ACTIONS, "reason": str, "code": str, "required_missing_params_by_group": Groups,
    "optional_missing_params_by_group": Groups,
})  # fmt: skip
RULES = {"missing_info": MissingInfoRule, "confirmation": ConfirmationRule, "required_param": ParamsRule}
Request = _type(
    "TraceIntegrationRequest", name=str, url=str, method=str, category=str, optional={"params": Any}
)
Resource = _type("TraceRagResource", title=str, content=str, score=float, optional={"score_label": str})
RagRequest = _type("TraceRagRequest", optional={"question": str})
RagResponse = _type("TraceRagResponse", optional={"resources": list[Resource]})
McpCall = _type("TraceMcpToolCall", tool_name=str, optional={
    "request_parameters": dict[str, Any], "response": Any, "is_error": bool, "latency": Latency,
})  # fmt: skip
INTEGRATIONS = {
    "REST": _type("TraceRestIntegration", code=str, requests=list[Request], optional={
        "type": Literal["REST"], "response": Any, "status_code": int, "error_message": str,
    }),
    "RAG": _type(
        "TraceRagIntegration", code=str, request=RagRequest,
        optional={"type": Literal["RAG"], "response": RagResponse},
    ),
    "MCP": _type("TraceMcpIntegration", code=str, name=str, completion=str, optional={
        "type": Literal["MCP"], "tool_calls": list[McpCall], "status": str, "latency": Latency,
    }),
}  # fmt: skip
Trigger = _type(
    "TraceTrigger",
    type=Literal["structured", "intent_classification", "active_tool", "rule", "sub_tool"],
    optional={"reasons": list[str], "matched_objective": str},
)


def _decision(kind: str, *, optional: dict[str, Any] | None = None, **required: Any) -> Any:
    return _type(
        kind, type=Literal[kind], tool=str, **required, optional={"track_id": str, **(optional or {})}
    )


DECISIONS = {
    "activate_tool": _decision("activate_tool", trigger=Trigger, optional={
        "referenced_entities": Objects,
        "check_status": Literal["CONFIRMED", "BLOCKED", "ACTIVE", "CANCELLED"],
    }),
    "activate_sub_tool": _decision("activate_sub_tool", parent_tool=str, trigger=Trigger),
    "params_check": _decision("params_check", status=STATUSES, optional={
        "required_missing_params_by_group": Groups, "optional_missing_params_by_group": Groups,
    }),
    "rule_triggered": _decision(
        "rule_triggered", rule=dict[str, Any], optional={"trigger_type": Literal["init", "pre-integration"]},
    ),
    "call_integration": _decision("call_integration", integration=dict[str, Any]),
    "ask_confirmation": _decision("ask_confirmation", optional={"confirmation_preview": Objects}),
    "tool_text_response": _decision("tool_text_response", status=str, optional={
        "text": str, "fail_reason": str, "tone_of_voice": str, "brevity": str, "questions": list[str],
    }),
    "self_review": _decision("self_review", optional={"entities": Objects}),
}  # fmt: skip
Guardrails = _type("TraceGuardrails", passed=bool, optional={"reason": str})
Understanding = _type(
    "TraceUnderstanding",
    guardrails=Guardrails,
    optional={"intents": list[str], "extracted_params": dict[str, Any]},
)
ActiveTool = _type("TraceActiveTool", tool=str, status=Literal["awaiting_params", "awaiting_confirmation"])
Context = _type("TraceContext", optional={
    "active_tools": list[ActiveTool], "entities": Objects, "static_context": Objects,
    "message_params": dict[str, Any], "response_params": dict[str, Any],
})  # fmt: skip
Response = _type(
    "TraceResponse", type=Literal["answer", "question", "blocked", "confirmation_request", "error"],
    message=str,
    optional={
        "suggestions": list[str], "question_reason": Literal["missing_params", "from_rule", "clarification"],
        "asking_for": list[str], "block_message": str, "error": str,
    },
)  # fmt: skip
Input = _type("TraceInput", message=str)
Trace = _type("TraceInfo", input=Input, response=Response, optional={
    "context": Context, "understanding": Understanding, "decisions": list[dict[str, Any]],
    "rules_evaluations": list[Evaluation], "latency": Latency,
})  # fmt: skip
Party = _type("MessageContactParty", id=str, type=Literal["user", "3p", "agent"], optional={"email": str})
Message = _type(
    "Message", id=str, created_at=str, text=str, sender=Party, receiver=Party, cards=Objects,
    followup_suggestions=list[str],
    optional={
        "welcome_message": str, "executed_workflows": list[str], "url": str, "trace_info": dict[str, Any],
    },
)  # fmt: skip
Task = _type(
    "CreateTaskResponse", id=str, user_id=str, title=str,
    optional={"welcome_message": str, "followup_suggestions": list[str]},
)  # fmt: skip


def differences(message: dict[str, Any]) -> list[str]:
    """Return the places of a message with a trace that are not as the types say."""
    trace = message["trace_info"]
    faults = [*_faults(Message, message, ""), *_faults(Trace, trace, "trace_info")]
    for number, decision in enumerate(trace.get("decisions", ())):
        place = f"decisions.{number}"
        faults += _faults(DECISIONS[decision["type"]], decision, place)
        if rule := decision.get("rule"):
            faults += _faults(RULES.get(rule["type"], OtherRule), rule, f"{place}.rule")
        if call := decision.get("integration"):
            faults += _faults(INTEGRATIONS[call["type"]], call, f"{place}.integration")
    return faults


def _faults(kind: Any, value: Any, place: str) -> list[str]:
    try:
        kind.model_validate(value)
    except ValidationError as error:
        return [f"{place}.{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
    return []
