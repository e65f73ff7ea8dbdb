"""A local server that behaves as GitLab's REST API does, as far as we use it, and keeps what is posted.

Lists come in pages with `x-next-page`; a job's own token may download artifacts and nothing else; notes are
those of one merge request. Paths and shapes are those of <https://docs.gitlab.com/api/>.
"""

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import world
from werkzeug import Request, Response

PROJECT = 4711
TOKEN = "glpat-" + "t0ken" * 4
JOB_TOKEN = "glcbt-" + "j0b" * 6
BOT = {"id": 99, "username": "project_4711_bot"}


@dataclass
class GitLabApi:
    """The state of a project, and what to do to the next requests."""

    url: str = ""
    notes: list[dict[str, Any]] = field(default_factory=list)
    pipelines: list[dict[str, Any]] = field(default_factory=list)
    jobs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    files: dict[tuple[int, str], bytes] = field(default_factory=dict)
    faults: list[tuple[str, Response]] = field(default_factory=list)
    """Answers to the next requests that `METHOD /path` matches."""
    requests: list[str] = field(default_factory=list)
    page: int = 2
    """The longest page, to have several."""

    def add_pipeline(
        self, number: int, data: bytes | None, *, status="success", ref="main", job="evals"
    ) -> None:
        """A pipeline with one job that left results, unless `data` is None."""
        sha = f"{number:040x}"
        self.pipelines.insert(0, {"id": number, "status": status, "ref": ref, "sha": sha})
        made = {"id": number * 10, "name": job, "status": status}
        if data is not None:
            made["artifacts_file"] = {"filename": "artifacts.zip", "size": len(data)}
            self.files[(number * 10, "results/_results.json")] = data
        self.jobs[number] = [made]

    def add_note(self, body: str, author=BOT) -> dict[str, Any]:
        note = {"id": 1000 + len(self.notes), "body": body, "author": author}
        self.notes.append(note)
        return note

    def environ(self, *, token=TOKEN, **more) -> dict[str, str]:
        """What a job of a merge request's pipeline has."""
        own = {"CI_EVALS_GITLAB_TOKEN": token} if token else {}
        return (
            {
                "CI": "true", "GITLAB_CI": "true", "CI_API_V4_URL": self.url, "CI_PROJECT_ID": str(PROJECT),
                "CI_PROJECT_URL": "https://gitlab.example/team/agent", "CI_JOB_NAME": "evals",
                "CI_JOB_URL": "https://gitlab.example/team/agent/-/jobs/77", "CI_JOB_TOKEN": JOB_TOKEN,
                "CI_PIPELINE_ID": "500", "CI_MERGE_REQUEST_IID": "7",
                "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
                "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": str(PROJECT), "CI_COMMIT_SHA": "c" * 40,
            }
            | own
            | more
        )  # fmt: skip

    def answer(self, request: Request) -> Response:
        asked = f"{request.method} {unquote(request.path.partition('/api/v4')[2])}"
        self.requests.append(asked)
        for matching, response in self.faults:
            if re.search(matching, asked):
                self.faults.remove((matching, response))
                return response
        if request.headers.get("Private-Token") == TOKEN:
            return self._routed(asked, request)
        if request.headers.get("Job-Token") == JOB_TOKEN:
            artifacts = re.search(r"/jobs/(\d+/)?artifacts/", asked)
            return self._routed(asked, request) if artifacts else error_response(403, "403 Forbidden")
        return error_response(401, "401 Unauthorized")

    def _routed(self, asked: str, request: Request) -> Response:
        project = f"/projects/{PROJECT}"
        body = request.get_json(silent=True) or {}
        match asked.removeprefix(f"GET {project}").split("/"):
            case ["", "pipelines"]:
                ref = request.args.get("ref")
                return self._page([one for one in self.pipelines if one["ref"] == ref], request)
            case ["", "pipelines", number, "jobs"]:
                return self._page(self.jobs[int(number)], request)
            case ["", "jobs", "artifacts", ref, "raw", *path]:
                passed = [
                    one["id"] for one in self.pipelines if one["ref"] == ref and one["status"] == "success"
                ]
                result = [self.files.get((number * 10, "/".join(path))) for number in passed]
                return Response(result[0]) if result and result[0] else error_response(404, "404 Not Found")
            case ["", "jobs", number, "artifacts", *path]:
                data = self.files.get((int(number), "/".join(path)))
                return error_response(404, "404 Not Found") if data is None else Response(data)
        notes = f"{project}/merge_requests/7/notes"
        if asked == "GET /user":
            return json_response(BOT)
        if asked == f"GET {notes}":
            return self._page(self.notes, request)
        if asked == f"POST {notes}":
            return json_response(self.add_note(body["body"]), 201)
        number = int(asked.rpartition("/")[2]) if re.fullmatch(rf"\w+ {notes}/\d+", asked) else None
        note = next((one for one in self.notes if one["id"] == number), None)
        if note is None:
            return error_response(404, "404 Not found")
        if asked.startswith("DELETE"):
            self.notes.remove(note)
            return Response(status=204)
        note["body"] = body["body"]
        return json_response(note)

    def _page(self, items: list[Any], request: Request) -> Response:
        size = min(self.page, int(request.args.get("per_page", 20)))
        first = (int(request.args.get("page", 1)) - 1) * size
        more = len(items) > first + size
        following = str(first // size + 2) if more else ""
        return json_response(items[first : first + size], headers={"x-next-page": following})


def json_response(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(body), status, headers, content_type="application/json")


def error_response(status: int, message: str, **headers: str) -> Response:
    """An error, as GitLab words it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return json_response({"message": message}, status, named)


@contextmanager
def serving():
    """Serve a project until the block ends."""
    with world.serving() as server:
        api = GitLabApi(server.url_for("/api/v4"))
        server.expect_request(re.compile("/api/v4/.*")).respond_with_handler(api.answer)
        yield api
