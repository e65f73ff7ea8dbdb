"""Replies and tasks in the format of the AUI task API. Optional fields are left out, never null."""

from typing import assert_never

from ci_evals.extensions.demo.playbook import McpIntegration, Playbook, RagIntegration, RestIntegration
from ci_evals.extensions.demo.reply import (
    ConfirmationRequest,
    Decision,
    DemoReply,
    IntegrationCall,
    ParametersChecked,
    ResponseType,
    RuleFired,
    RulePart,
    WorkflowAnswer,
    WorkflowStarted,
)

Body = dict[str, object]
AGENT = "intelligent-agent"


def task(task_id: str, user_id: str, playbook: Playbook) -> Body:
    """Return a task."""
    return {
        "id": task_id,
        "user_id": user_id,
        "title": "New conversation",
        "welcome_message": playbook.texts.welcome,
        "followup_suggestions": list(playbook.suggestions),
    }


def agent_message(message_id: str, created_at: str, user_id: str, reply: DemoReply) -> Body:
    """Return the agent's message, without its trace."""
    return {
        "id": message_id,
        "created_at": created_at,
        "text": reply.text,
        "sender": {"id": AGENT, "type": "agent"},
        "receiver": {"id": user_id, "type": "user"},
        "cards": [],
        "followup_suggestions": list(reply.suggestions),
        "executed_workflows": list(reply.workflows),
    }


def trace(message: str, reply: DemoReply, *, business: bool, context: bool) -> Body:
    """Return the trace of a reply. Calls of integrations belong to the context, all else to the business."""
    body: Body = {"input": {"message": message}}
    if business:
        body["understanding"] = _understanding(reply)
    if context and (tools := _active_tools(reply)):
        body["context"] = {"active_tools": tools}
    body["decisions"] = [
        _decision(item)
        for item in reply.decisions
        if (context if isinstance(item, IntegrationCall) else business)
    ]
    body["response"] = _response(reply)
    if business and reply.evaluations:
        body["rules_evaluations"] = [
            {
                "code": item.code,
                "triggered": item.triggered,
                "reason": [{"condition": _condition(part), "passed": part.holds} for part in item.parts],
            }
            for item in reply.evaluations
        ]
    return body


def _condition(part: RulePart) -> Body:
    body: Body = {
        "method": "api_response_param_value" if part.of_call else "param_value",
        "params": [part.name],
        "operation": part.operation,
    }
    return body if part.value is None else body | {"value": part.value}


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
                "confirmation_preview": [{"text": decision.preview}],
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
    if rule.type == "required_param":
        body["status"] = "missing_required" if rule.added else "all_filled"
        if rule.added:
            body["required_missing_params_by_group"] = [list(rule.added)]
    elif rule.added:
        body["params_added"] = dict.fromkeys(rule.added, "undefined")
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
                "params": dict(call.params),
            }
            body |= {"requests": [request], "status_code": call.status}
            if call.error is not None:
                body["error_message"] = call.error
        case RagIntegration():
            resources = [
                {"title": title, "content": f"{title}. {integration.question}", "score": 0.9 / place}
                for place, title in enumerate(integration.resources, start=1)
            ]
            body |= {"request": {"question": integration.question}, "response": {"resources": resources}}
        case McpIntegration():
            tool_call = {
                "tool_name": integration.tool,
                "request_parameters": dict(call.params),
                "is_error": False,
            }
            body |= {"name": call.code, "completion": integration.completion, "tool_calls": [tool_call]}
        case _:
            assert_never(integration)
    return body
