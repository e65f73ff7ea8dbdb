"""Replies and tasks in the format of the AUI task API. Optional fields are left out, never null."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, assert_never

from ci_evals.demo_agent.playbook import McpIntegration, RagIntegration, RestIntegration
from ci_evals.demo_agent.reply import (
    ConfirmationRequest,
    Decision,
    DemoReply,
    IntegrationCall,
    ParametersChecked,
    ResponseType,
    RuleFired,
    WorkflowAnswer,
    WorkflowStarted,
)

Body = dict[str, Any]
AGENT = "intelligent-agent"


@dataclass(frozen=True)
class Sections:
    """The requested parts of a trace."""

    business: bool
    context: bool

    def __bool__(self) -> bool:
        return self.business or self.context


def task(task_id: str, user_id: str, welcome: str, suggestions: Iterable[str]) -> Body:
    """Return a task."""
    return {
        "id": task_id,
        "user_id": user_id,
        "title": "New conversation",
        "welcome_message": welcome,
        "followup_suggestions": list(suggestions),
    }


def agent_message(message_id: str, created_at: str, user_id: str, reply: DemoReply) -> Body:
    """Return the agent's message, without its trace."""
    message = _message(message_id, created_at, reply.text, (AGENT, "agent"), (user_id, "user"))
    return message | {
        "followup_suggestions": list(reply.suggestions),
        "executed_workflows": list(reply.workflows),
    }


def user_message(message_id: str, created_at: str, user_id: str, text: str) -> Body:
    """Return the user's message, as in the list of a task's messages."""
    return _message(message_id, created_at, text, (user_id, "user"), (AGENT, "agent"))


def _message(
    message_id: str, created_at: str, text: str, sender: tuple[str, str], receiver: tuple[str, str]
) -> Body:
    return {
        "id": message_id,
        "created_at": created_at,
        "text": text,
        "sender": {"id": sender[0], "type": sender[1]},
        "receiver": {"id": receiver[0], "type": receiver[1]},
        "cards": [],
        "followup_suggestions": [],
    }


def trace(message: str, reply: DemoReply, sections: Sections) -> Body:
    """Return the trace of a reply. Calls of integrations belong to the context, all else to the business."""
    body: Body = {"input": {"message": message}}
    if sections.business:
        body["understanding"] = _understanding(reply)
    if sections.context and (tools := _active_tools(reply)):
        body["context"] = {"active_tools": tools}
    body["decisions"] = [
        _decision(item)
        for item in reply.decisions
        if (sections.context if isinstance(item, IntegrationCall) else sections.business)
    ]
    body["response"] = _response(reply)
    if sections.business and reply.evaluations:
        body["rules_evaluations"] = [
            {
                "code": item.code,
                "triggered": item.triggered,
                "reason": [{"condition": condition, "passed": passed} for condition, passed in item.parts],
            }
            for item in reply.evaluations
        ]
    return body


def as_older_server(body: Body) -> Body:
    """Return the message in shapes that older servers are known to send: nulls, lists for maps, no zone."""
    odd = {key: value for key, value in body.items() if key != "cards"}
    odd |= {
        "created_at": body["created_at"].replace("T", " ").removesuffix("Z"),
        "sender": {**body["sender"], "email": None},
        "receiver": {**body["receiver"], "email": None},
        "options": [],
        "followup_suggestions": None,
        "welcome_message": None,
        "executed_workflows": [{"name": name} for name in body["executed_workflows"]] or None,
    }
    if "trace_info" in body:
        odd["trace_info"] = _odd_trace(body["trace_info"])
    return odd


def _odd_trace(trace_info: Body) -> Body:
    odd = {
        **trace_info,
        "context": None,
        "decisions": [
            {"type": "no_tool"},
            {"type": "rule_triggered", "tool": "UNKNOWN", "rule": {"type": "constraint", "code": None}},
            *trace_info["decisions"],
            None,
        ],
        "response": {"error": None, **trace_info["response"]},
    }
    if "understanding" in trace_info:
        params = trace_info["understanding"]["extracted_params"]
        listed = [{"code": code, "value": value} for code, value in params.items()]
        odd["understanding"] = {"guardrails": None, "intents": None, "extracted_params": listed}
    return odd


def _understanding(reply: DemoReply) -> Body:
    guardrails: Body = {"passed": reply.refusal is None}
    if reply.refusal is not None:
        guardrails["reason"] = reply.refusal
    return {
        "guardrails": guardrails,
        "intents": list(reply.intents),
        "extracted_params": dict(reply.params),
    }


def _active_tools(reply: DemoReply) -> list[Body]:
    status = {ResponseType.QUESTION: "awaiting_params", ResponseType.CONFIRMATION: "awaiting_confirmation"}
    return [{"tool": tool, "status": status[reply.type]} for tool in reply.workflows if reply.type in status]


def _response(reply: DemoReply) -> Body:
    body: Body = {"type": str(reply.type), "message": reply.text}
    if reply.suggestions:
        body["suggestions"] = list(reply.suggestions)
    if reply.type is ResponseType.QUESTION:
        reason = "from_rule" if reply.because_of_rule else "missing_params"
        body["question_reason"] = reason if reply.asking_for else "clarification"
    if reply.asking_for:
        body["asking_for"] = list(reply.asking_for)
    if reply.type is ResponseType.BLOCKED:
        body["block_message"] = reply.refusal or reply.text
    if reply.error is not None:
        body["error"] = reply.error
    return body


def _decision(decision: Decision) -> Body:
    match decision:
        case WorkflowStarted():
            trigger = {"type": decision.trigger, "reasons": [decision.reason]}
            body: Body = {"type": "activate_tool", "tool": decision.tool, "trigger": trigger}
        case ParametersChecked():
            status = "missing_required" if decision.missing else "all_filled"
            body = {"type": "params_check", "tool": decision.tool, "status": status}
            if decision.missing:
                body["required_missing_params_by_group"] = [list(decision.missing)]
        case RuleFired():
            body = {"type": "rule_triggered", "tool": decision.tool, "rule": _rule(decision)}
            if decision.trigger is not None:
                body["trigger_type"] = decision.trigger
        case IntegrationCall():
            body = {"type": "call_integration", "tool": decision.tool, "integration": _integration(decision)}
        case ConfirmationRequest():
            body = {
                "type": "ask_confirmation",
                "tool": decision.tool,
                "confirmation_preview": decision.preview,
            }
        case WorkflowAnswer():
            status = "fail" if decision.failed else "success"
            body = {
                "type": "tool_text_response",
                "tool": decision.tool,
                "status": status,
                "text": decision.text,
            }
        case _:
            assert_never(decision)
    return body


def _rule(rule: RuleFired) -> Body:
    body: Body = {"type": rule.type, "code": rule.code, "reason": rule.reason}
    if rule.action is not None:
        body["action"] = rule.action
    if rule.added:
        body["params_added"] = list(rule.added)
    return body


def _integration(call: IntegrationCall) -> Body:
    integration = call.integration
    body: Body = {"code": call.code, "type": integration.type}
    match integration:
        case RestIntegration():
            request = {
                "name": call.code,
                "url": call.url or integration.url,
                "method": integration.method,
                "category": integration.category,
            }
            body |= {"requests": [request], "status_code": call.status}
            if call.error is not None:
                body["error_message"] = call.error
        case RagIntegration():
            resources = [{"title": title} for title in integration.resources]
            body |= {"request": {"question": integration.question}, "response": {"resources": resources}}
        case McpIntegration():
            tool_call = {"tool_name": integration.tool, "is_error": False}
            body |= {"name": call.code, "completion": integration.completion, "tool_calls": [tool_call]}
        case _:
            assert_never(integration)
    return body
