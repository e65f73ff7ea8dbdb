"""The custom actions of a Rasa assistant, for `python -m rasa_sdk --actions actions`."""

import os

from rasa_sdk import Action
from rasa_sdk.events import ConversationPaused, SlotSet

AMOUNT = 24.0 if os.environ.get("WRONG") == "amount" else 42.0


class Lookup(Action):
    """Look an order up."""

    def name(self):
        """Return the action's name."""
        return "lookup"

    def run(self, dispatcher, tracker, domain):
        """Say what is to be refunded."""
        return [SlotSet("amount", AMOUNT)]


class Refund(Action):
    """Refund an order."""

    def name(self):
        """Return the action's name."""
        return "refund"

    def run(self, dispatcher, tracker, domain):
        """Refund what the slot says."""
        return [SlotSet("refunded", tracker.get_slot("amount"))]


class ToPerson(Action):
    """Hand over to a person."""

    def name(self):
        """Return the action's name."""
        return "to_person"

    def run(self, dispatcher, tracker, domain):
        """Stop answering."""
        return [ConversationPaused()]


class Fails(Action):
    """Fail."""

    def name(self):
        """Return the action's name."""
        return "fails"

    def run(self, dispatcher, tracker, domain):
        """Raise an error."""
        raise RuntimeError("the bank is closed")
