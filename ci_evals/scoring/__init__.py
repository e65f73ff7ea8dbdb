"""From a run to numbers and the decision of the gate; pure."""
