"""The workload as a task of inspect_ai, for the environment that `bench.peers.inspect_ai` makes."""

import argparse
import json
from pathlib import Path
from typing import Any

import aiohttp
from inspect_ai import Epochs, Task, eval  # noqa: A004  # its name there
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    ResponseSchema,
    get_model,
)
from inspect_ai.scorer import Scorer, accuracy, mean_score, model_graded_qa, value_to_float
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import JSONSchema

from bench.server import TURNS

_VERDICT = ResponseSchema(
    name="verdict",
    json_schema=JSONSchema(
        type="object",
        properties={
            "reasoning": JSONSchema(type="string"),
            "verdict": JSONSchema(type="string", enum=["pass", "fail"]),
            "evidence": JSONSchema(
                type="array",
                items=JSONSchema(
                    type="object",
                    properties={
                        "turn": JSONSchema(type="integer"),
                        "quote": JSONSchema(type="string"),
                    },
                    required=["turn", "quote"],
                ),
            ),
        },
        required=["reasoning", "verdict", "evidence"],
    ),
)
_GRADE = r'"verdict": "(pass|fail)"'
_QUESTION = """A conversation of a user with an agent, the agent's last reply apart:

{question}

The agent's last reply: {answer}

Criterion: CRITERION

{instructions}"""


def main() -> None:
    """Plays the suite so many times.

    Raises:
        RuntimeError: a sample failed, or was not scored by every judge.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=Path)
    parser.add_argument("url")
    parser.add_argument("--loops", type=int, required=True)
    parser.add_argument("--parallel", type=int, required=True)
    parser.add_argument("--logs", required=True)
    options = parser.parse_args()
    tests = json.loads(options.suite.read_text())["tests"]
    connections = 4 * options.parallel
    (log,) = eval(
        _task(tests, options.url, options.loops),
        model="none",
        model_roles={
            "user": _model(options.url, GenerateConfig(max_connections=connections)),
            "grader": _model(
                options.url, GenerateConfig(max_connections=connections, response_schema=_VERDICT)
            ),
        },
        max_samples=options.parallel,
        log_dir=options.logs,
        display="plain",
    )
    scored = [score.metrics["accuracy"].value for score in log.results.scores] if log.results else []
    if log.status != "success" or scored != [1.0, 1.0, 1.0]:
        raise RuntimeError(f"{log.status}, {scored}: {log.error}")


def _task(tests: list[dict[str, Any]], url: str, loops: int) -> Task:
    worth = value_to_float(correct="pass", incorrect="fail")
    criteria = [one["criterion"] for one in tests[0]["evaluations"] if "strict" not in one]
    return Task(
        dataset=[
            Sample(
                id=test["name"],
                input=test["turns"][0]["user"],
                metadata={"guidelines": test["guidelines"], "userInfo": test["userInfo"]},
            )
            for test in tests
        ],
        solver=conversation(url),
        scorer=[_judge(criterion) for criterion in criteria],
        metrics=[accuracy(to_float=worth)],
        epochs=Epochs(loops, mean_score(value_to_float=worth)),
        name="bench",
    )


def _judge(criterion: str) -> Scorer:
    return model_graded_qa(
        template=_QUESTION.replace("CRITERION", criterion),
        instructions="Does the conversation meet the criterion? Answer in JSON.",
        grade_pattern=_GRADE,
        include_history=True,
    )


def _model(url: str, config: GenerateConfig) -> Model:
    return get_model(
        "openai/bench", base_url=f"{url}/v1", api_key="bench-llm-key", config=config, responses_api=False
    )


@solver
def conversation(url: str) -> Solver:
    """Holds the conversation: opens a task, then the agent and the simulated user in turn."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001  # as every solver
        user = get_model(role="user")
        told = ChatMessageSystem(content=f"{state.metadata['guidelines']}\n{state.metadata['userInfo']}")
        async with aiohttp.ClientSession(headers={"x-network-api-key": "bench-agent-key"}) as session:
            task = await _post(session, f"{url}/external/tasks", {"agent_id": "bench", "user_id": "bench"})
            while True:
                asked = {"task_id": task["id"], "text": state.messages[-1].text, "is_external_api": True}
                reply = await _post(session, f"{url}/external/message", asked)
                state.messages.append(ChatMessageAssistant(content=reply["text"]))
                if len(state.messages) == 2 * TURNS:
                    break
                line = await user.generate([told, *_seen_by_user(state)])
                state.messages.append(ChatMessageUser(content=line.completion))
        state.output = ModelOutput.from_content("bench", reply["text"])
        return state

    return solve


def _seen_by_user(state: TaskState) -> list[ChatMessageAssistant | ChatMessageUser]:
    return [
        (ChatMessageAssistant if message.role == "user" else ChatMessageUser)(content=message.text)
        for message in state.messages
    ]


async def _post(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> Any:
    async with session.post(url, json=body) as response:
        response.raise_for_status()
        return await response.json()


if __name__ == "__main__":
    main()
