"""A local server that behaves as GitHub's REST API does, as far as we use it, and keeps what is posted.

Lists come in pages of 30, at most 100, with Link headers; downloads redirect to another origin, which refuses
credentials; what a token may not do is answered with 403. Paths, parameters and shapes are those of
<https://docs.github.com/en/rest>.
"""

import io
import json
import re
import ssl
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

REPOSITORY = "octo/agent"
REPOSITORY_ID = 4711
FORK = "eve/agent"
FORK_ID = 6666
TOKEN = "ghs_" + "t0ken" * 7
BOT = {"login": "github-actions[bot]", "type": "Bot", "id": 41898282}

Json = Any
Route = Callable[..., Json]


@dataclass(frozen=True)
class Request:
    """One request that the server was sent."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Json

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class Answer:
    """What to answer in place of the usual."""

    status: int
    body: Json = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None


HANG_UP = Answer(0)
"""No answer: the connection is closed."""


class RefusedError(Exception):
    """An answer other than 200 or 201."""

    def __init__(self, status: int, message: str, *, faults: Json = None, **headers: str) -> None:
        super().__init__(message)
        result = {"message": message, "documentation_url": "https://docs.github.com/rest"}
        self.answer = Answer(status, result | ({"errors": faults} if faults else {}), headers)


def zip_of(files: dict[str, str | bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


class GitHubApi:
    """The state of a repository on GitHub, and what to do to the next requests."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.blob_requests: list[Request] = []
        self.permissions = {"actions: read", "contents: read", "pull-requests: write", "checks: write"}
        self.comments: dict[int, list[Json]] = {}
        self.check_runs: list[Json] = []
        self.pulls: list[Json] = []
        self.passed_by: dict[str, list[Json]] = {}
        """The pull requests that hold a commit, but do not end with it."""
        self.commits: dict[str, Json] = {}
        self.changes: dict[tuple[str, str], list[Json]] = {}
        """The files of a comparison, by its two ends."""
        self.artifacts: list[Json] = []
        self.runs: dict[int, Json] = {}
        self.blobs: dict[int, bytes] = {}
        self.rights: dict[str, str | None] = {}
        """What people may do, where it is not to write; None for somebody whom nobody knows."""
        self.user: Json | None = None
        """Whom the token belongs to, if to a person."""
        self.bot = dict(BOT)
        """Whom it belongs to else: the job, or an app."""
        self.graphql = True
        self.locked: set[int] = set()
        """The pull requests whose conversation takes no new comment."""
        self.faults: list[tuple[str, list[Answer]]] = []
        self.before: list[tuple[str, Callable[[], None]]] = []
        """What happens once, just before a request that matches is answered: another writer, say."""
        self.url = self.blob_url = ""
        self._ids = iter(range(1000, 10**9))
        self._lock = threading.RLock()

    # -- what a test arranges

    def fail(self, matching: str, *answers: Answer) -> None:
        """The next requests that `METHOD /path` matches are answered so, one after the other."""
        self.faults.append((matching, list(answers)))

    def add_comment(self, number: int, body: str, user: Json = None) -> Json:
        comment = {"id": next(self._ids), "body": body, "user": user or self.bot}
        comment |= {"created_at": "2026-11-21T09:00:00Z", "performed_via_github_app": None}
        comment["html_url"] = f"https://github.com/{REPOSITORY}/pull/{number}#issuecomment-{comment['id']}"
        self.comments.setdefault(number, []).append(comment)
        return comment

    def add_commits(self, *shas: str, first_day: int = 1) -> None:
        """A line of commits, oldest first, one a day."""
        for place, sha in enumerate(shas):
            parents = [shas[place - 1]] if place else []
            self.add_commit(sha, *parents, date=f"2026-11-{first_day + place:02}T08:00:00Z")

    def add_commit(self, sha: str, *parents: str, date: str = "2026-11-20T08:00:00Z") -> None:
        self.commits[sha] = {
            "sha": sha,
            "parents": [{"sha": parent} for parent in parents],
            "commit": {"committer": {"date": date}, "message": "A change"},
        }

    def add_pull(self, number: int, sha: str, *, repository: str = REPOSITORY, **fields: Json) -> Json:
        """An open pull request from `branch` (default `topic`) to main."""
        owner = repository.partition("/")[0]
        pull = {
            "number": number, "state": "open",
            "head": {
                "sha": sha, "ref": fields.pop("branch", "topic"),
                "repo": {"full_name": repository, "owner": {"login": owner}},
            },
            "base": {"ref": "main", "sha": "b" * 40, "repo": {"full_name": REPOSITORY}},
        } | fields  # fmt: skip
        self.pulls.append(pull)
        return pull

    def add_run(self, sha: str, data: bytes | None = None, **fields: Json) -> Json:
        """A run of a workflow on a commit, with the artifact that it left, unless `data` is None."""
        run_id = next(self._ids)
        name, expired = fields.pop("name", "ci-evals-results-default"), fields.pop("expired", False)
        run = {
            "id": run_id, "workflow_id": 77, "event": "push", "head_branch": "main", "head_sha": sha,
            "path": ".github/workflows/evals.yml", "status": "completed", "conclusion": "success",
            "repository": {"id": REPOSITORY_ID}, "head_repository": {"id": REPOSITORY_ID},
            "created_at": "2026-11-20T09:00:00Z",
        } | fields  # fmt: skip
        self.runs[run_id] = run
        if data is not None:
            self.add_artifact(run, data, name=name, expired=expired)
        return run

    def add_artifact(self, run: Json, data: bytes, *, name: str, expired: bool = False) -> Json:
        artifact = {
            "id": next(self._ids), "name": name, "expired": expired, "created_at": run["created_at"],
            "size_in_bytes": len(data),
            "workflow_run": {
                "id": run["id"], "repository_id": REPOSITORY_ID,
                "head_repository_id": run["head_repository"]["id"], "head_branch": run["head_branch"],
                "head_sha": run["head_sha"],
            },
        }  # fmt: skip
        self.artifacts.append(artifact)
        self.blobs[artifact["id"]] = data
        return artifact

    def requests_to(self, matching: str) -> list[Request]:
        """The requests that `METHOD /path` matches."""
        return [request for request in self.requests if re.search(matching, str(request))]

    # -- what it answers

    def answer(self, request: Request) -> tuple[Answer, bool]:
        """The answer, and whether it is a list to be given in pages."""
        with self._lock:
            self.requests.append(request)
            for matching, happen in list(self.before):
                if re.search(matching, str(request)):
                    self.before.remove((matching, happen))
                    happen()
            for matching, answers in self.faults:
                if answers and re.search(matching, str(request)):
                    return answers.pop(0), False
            try:
                body = self._routed(request)
            except RefusedError as refused:
                return refused.answer, False
            if isinstance(body, Answer):
                return body, False
            return Answer(201 if request.method == "POST" else 204 if body is None else 200, body), True

    def _routed(self, request: Request) -> Json:
        if request.headers.get("authorization") != f"Bearer {self.token}":
            raise RefusedError(401, "Bad credentials")
        for method, pattern, needs, route in self._routes:
            result = re.fullmatch(pattern.replace("REPO", f"/repos/{REPOSITORY}"), request.path)
            if method == request.method and result:
                if needs and needs not in self.permissions:
                    raise RefusedError(
                        403,
                        "Resource not accessible by integration",
                        **{"x-accepted-github-permissions": needs.replace(": ", "=").replace("-", "_")},
                    )
                return route(self, request, *result.groups())
        raise RefusedError(404, "Not Found")

    token = TOKEN

    def _who(self, _request: Request) -> Json:
        if self.user is None:
            raise RefusedError(403, "Resource not accessible by integration")
        return self.user

    def _viewer(self, _request: Request) -> Json:
        if not self.graphql:
            raise RefusedError(404, "Not Found")
        account = self.user or self.bot
        return Answer(200, {"data": {"viewer": {"login": account["login"]}}})

    def _list_artifacts(self, request: Request) -> Json:
        name = request.query.get("name")
        result = [one for one in self.artifacts if name in {None, one["name"]}]
        return {"total_count": len(result), "artifacts": sorted(result, key=lambda one: -one["id"])}

    def _zip(self, _request: Request, number: str) -> Json:
        artifact = next((one for one in self.artifacts if one["id"] == int(number)), None)
        if artifact is None:
            raise RefusedError(404, "Not Found")
        if artifact["expired"]:
            raise RefusedError(410, "Artifact has expired")
        return Answer(302, None, {"Location": f"{self.blob_url}/{number}?sig=signed-secret"})

    def _run(self, _request: Request, number: str) -> Json:
        if int(number) not in self.runs:
            raise RefusedError(404, "Not Found")
        return self.runs[int(number)]

    def _artifacts_of_run(self, _request: Request, number: str) -> Json:
        result = [one for one in self.artifacts if one["workflow_run"]["id"] == int(number)]
        return {"total_count": len(result), "artifacts": sorted(result, key=lambda one: -one["id"])}

    def _commit(self, _request: Request, sha: str) -> Json:
        if sha not in self.commits:
            raise RefusedError(422, f"No commit found for SHA: {sha}")
        return self.commits[sha]

    def _list_commits(self, request: Request) -> Json:
        sha, result = request.query.get("sha", ""), []
        while sha in self.commits:
            result.append(self.commits[sha])
            sha = next((parent["sha"] for parent in self.commits[sha]["parents"]), "")
        if not result:
            raise RefusedError(404, "Not Found")
        return result

    def _compare(self, _request: Request, base: str, head: str) -> Json:
        if (ends := (unquote(base), unquote(head))) not in self.changes:
            raise RefusedError(404, "Not Found")
        return {"files": self.changes[ends]}

    def _pulls_of_commit(self, _request: Request, sha: str) -> Json:
        # Commits that are in a fork alone are not found from here.
        own = [pull for pull in self.pulls if (pull["head"]["repo"] or {}).get("full_name") == REPOSITORY]
        return [pull for pull in own if pull["head"]["sha"] == sha] + self.passed_by.get(sha, [])

    def _list_pulls(self, request: Request) -> Json:
        owner, _, branch = request.query.get("head", "").partition(":")
        result = [pull for pull in self.pulls if request.query.get("state", "open") in {"all", pull["state"]}]
        if branch:
            result = [
                pull
                for pull in result
                if pull["head"]["ref"] == branch
                and (pull["head"]["repo"] or {}).get("owner", {}).get("login") == owner
            ]
        return result

    def _pull(self, _request: Request, number: str) -> Json:
        for pull in self.pulls:
            if pull["number"] == int(number):
                return pull
        raise RefusedError(404, "Not Found")

    def _list_comments(self, _request: Request, number: str) -> Json:
        return self.comments.get(int(number), [])

    def _checked(self, body: str) -> str:
        if len(body.encode()) > 65_536:
            too_long = {
                "resource": "IssueComment", "code": "unprocessable", "field": "data",
                "message": "Body is too long (maximum is 65536 characters)",
            }  # fmt: skip
            raise RefusedError(422, "Validation Failed", faults=[too_long])
        return body

    def _create_comment(self, request: Request, number: str) -> Json:
        if int(number) in self.locked:
            raise RefusedError(403, "Unable to create comment because issue is locked.")
        return self.add_comment(int(number), self._checked(request.body["body"]), self.user)

    def _of_id(self, number: str) -> tuple[list[Json], Json]:
        for comments in self.comments.values():
            for comment in comments:
                if comment["id"] == int(number):
                    return comments, comment
        raise RefusedError(404, "Not Found")

    def _comment(self, _request: Request, number: str) -> Json:
        return self._of_id(number)[1]

    def _react(self, request: Request, number: str) -> Json:
        return {"content": request.body["content"], "of": self._of_id(number)[1]["id"]}

    def _permission(self, _request: Request, login: str) -> Json:
        if (permission := self.rights.get(login, "write")) is None:
            raise RefusedError(404, f"{login} is not a user")
        return {"permission": permission, "role_name": permission}

    def _runs_of_workflow(self, request: Request, workflow: str) -> Json:
        names = ("head_sha", "event", "status")
        asked: Json = {name: request.query[name] for name in names if name in request.query}
        if workflow.isdecimal():  # else the name of its file
            asked["workflow_id"] = int(workflow)
        result = [run for run in self.runs.values() if asked.items() <= run.items()]
        return {"total_count": len(result), "workflow_runs": sorted(result, key=lambda run: -run["id"])}

    def _rerun(self, _request: Request, run: str) -> Json:
        if int(run) not in self.runs:
            raise RefusedError(404, "Not Found")
        return Answer(201, raw=b"{}")

    def _dispatch(self, _request: Request, _workflow: str) -> Json:
        return Answer(204, raw=b"")

    def _edit_comment(self, request: Request, number: str) -> Json:
        comment = self._of_id(number)[1]
        comment["body"] = self._checked(request.body["body"])
        return comment

    def _delete_comment(self, _request: Request, number: str) -> Json:
        comments, comment = self._of_id(number)
        comments.remove(comment)

    def _create_check_run(self, request: Request) -> Json:
        given = request.body
        if given["head_sha"] not in self.commits:
            raise RefusedError(422, f"No commit found for SHA: {given['head_sha']}")
        output = given["output"]
        if len(output["summary"].encode()) > 65_535 or any(ord(sign) > 0xFFFF for sign in str(output)):
            raise RefusedError(422, "Invalid request.")
        check = given | {"id": next(self._ids)}
        check["html_url"] = f"https://github.com/{REPOSITORY}/runs/{check['id']}"
        self.check_runs.append(check)
        return check

    _routes: tuple[tuple[str, str, str | None, Route], ...] = (
        ("GET", "/user", None, _who),
        ("POST", "/graphql", None, _viewer),
        ("GET", "REPO/actions/artifacts", "actions: read", _list_artifacts),
        ("GET", r"REPO/actions/artifacts/(\d+)/zip", "actions: read", _zip),
        ("GET", r"REPO/actions/runs/(\d+)", "actions: read", _run),
        ("GET", r"REPO/actions/runs/(\d+)/artifacts", "actions: read", _artifacts_of_run),
        ("GET", "REPO/commits", "contents: read", _list_commits),
        ("GET", r"REPO/commits/(\w+)", "contents: read", _commit),
        ("GET", r"REPO/commits/(\w+)/pulls", "pull-requests: write", _pulls_of_commit),
        ("GET", r"REPO/compare/(.+)\.\.\.(.+)", "contents: read", _compare),
        ("GET", "REPO/pulls", "pull-requests: write", _list_pulls),
        ("GET", r"REPO/pulls/(\d+)", "pull-requests: write", _pull),
        ("GET", r"REPO/issues/(\d+)/comments", None, _list_comments),
        ("POST", r"REPO/issues/(\d+)/comments", "pull-requests: write", _create_comment),
        ("GET", r"REPO/issues/comments/(\d+)", None, _comment),
        ("POST", r"REPO/issues/comments/(\d+)/reactions", "pull-requests: write", _react),
        ("GET", r"REPO/collaborators/([^/]+)/permission", None, _permission),
        ("GET", r"REPO/actions/workflows/([^/]+)/runs", "actions: read", _runs_of_workflow),
        ("POST", r"REPO/actions/runs/(\d+)/rerun-failed-jobs", "actions: write", _rerun),
        ("POST", r"REPO/actions/workflows/([^/]+)/dispatches", "actions: write", _dispatch),
        ("PATCH", r"REPO/issues/comments/(\d+)", "pull-requests: write", _edit_comment),
        ("POST", "REPO/check-runs", "checks: write", _create_check_run),
        ("DELETE", r"REPO/issues/comments/(\d+)", "pull-requests: write", _delete_comment),
    )

    def blob(self, request: Request) -> Answer:
        """What the store of artifacts answers, which takes a signature and no credentials."""
        with self._lock:
            self.blob_requests.append(request)
            for matching, answers in self.faults:
                if answers and re.search(matching, f"BLOB {request.path}"):
                    return answers.pop(0)
            if "authorization" in request.headers or request.query.get("sig") != "signed-secret":
                return Answer(400, raw=b"<Error>InvalidAuthenticationInfo</Error>")
            return Answer(200, raw=self.blobs[int(request.path.strip("/"))])


@contextmanager
def serving() -> Iterator[GitHubApi]:
    """The API on a free port of this machine, and the store of artifacts on another."""
    api = GitHubApi()
    servers = [_server(api.answer, api), _server(lambda request: (api.blob(request), False), api)]
    api.url, api.blob_url = (f"http://127.0.0.1:{server.server_port}" for server in servers)
    with _listening(*servers):
        yield api


@contextmanager
def _listening(*servers: ThreadingHTTPServer) -> Iterator[None]:
    for server in servers:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def _server(answer: Callable[[Request], tuple[Answer, bool]], api: GitHubApi) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # in one packet: else each answer waits 40 ms for an acknowledgement
        disable_nagle_algorithm = True  # else head and body, written one by one, wait 40 ms for each other

        def _handle(self) -> None:
            parts = urlsplit(self.path)
            size = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, parts.path, query, headers, body)
            given, paged = answer(request)
            if paged:
                given = _page(given, request, api.url)
            if given.status == 0:
                self.close_connection = True
                return
            data = given.raw if given.raw is not None else json.dumps(given.body).encode()
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name, value)
            if "Content-Length" in given.headers:
                self.close_connection = True  # it promised more
            else:
                self.send_header("Content-Length", "0" if given.status in (204, 304) else str(len(data)))
            self.end_headers()
            if given.status not in (204, 304):
                self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = _handle  # noqa: N815

        def log_message(self, *_args: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def _page(given: Answer, request: Request, url: str) -> Answer:
    """The asked page of a list, with the addresses of its neighbours."""
    listed, key = given.body, ""
    if isinstance(given.body, dict):
        key = "workflow_runs" if "workflow_runs" in given.body else "artifacts"
        listed = given.body.get(key)
    if request.method != "GET" or not isinstance(listed, list):
        return given
    size = max(1, min(100, int(request.query.get("per_page", 30))))
    page = int(request.query.get("page", 1))
    part = listed[(page - 1) * size : page * size]
    headers = {}
    if page * size < len(listed):
        query = "&".join(f"{k}={v}" for k, v in (request.query | {"page": str(page + 1)}).items())
        headers["Link"] = f'<{url}{request.path}?{query}>; rel="next", <{url}{request.path}>; rel="first"'
    body = given.body | {key: part} if isinstance(given.body, dict) else part
    return Answer(given.status, body, headers)


@contextmanager
def serving_tls(answer: Answer, key: Path, certificate: Path) -> Iterator[str]:
    """A server on `localhost` that gives this answer to everything, over TLS."""
    server = _server(lambda _: (answer, False), GitHubApi())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with _listening(server):
        yield f"https://localhost:{server.server_port}"
