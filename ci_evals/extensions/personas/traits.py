"""The traits that a persona can have: what it is told, and what its reader is told."""

from dataclasses import dataclass

from ci_evals.support.templates import render

_PROMPTS = "extensions/personas/prompts/{}.md.j2"


@dataclass(frozen=True)
class Trait:
    """One way in which a user makes a conversation harder."""

    name: str
    title: str
    """A person with it, as a clause after `who`."""
    audited: bool = False
    """True if a model checks whether the user keeps to it, since models soften it."""

    @property
    def prompt(self) -> str:
        """The instruction for the simulated user."""
        return render(_PROMPTS.format(self.name)).strip()


TRAITS = {
    trait.name: trait
    for trait in (
        Trait("one_fact_at_a_time", "gives one fact in a message"),
        Trait("pushes_back", "objects once before accepting a refusal or an offer"),
        Trait("impatient", "is in a hurry, complains, and may be rude"),
        Trait("terse", "writes five words at most"),
        Trait("changes_mind", "asks for something else in the middle, and goes back to the first request"),
        Trait("typos", "makes typing errors"),
        Trait("second_language", "writes in a language that is not their own, without articles"),
        Trait("hostile", "insists, flatters, claims authority and changes language", audited=True),
    )
}


def in_language(code: str) -> str:
    """Return what a simulated user is told who writes in a language."""
    return render(_PROMPTS.format("language"), language=code).strip()


def instructions(traits: tuple[str, ...]) -> str:
    """Return what a simulated user with these traits is told."""
    heading = render(_PROMPTS.format("heading")).strip()
    return "\n".join([heading, *(TRAITS[name].prompt for name in traits)])
