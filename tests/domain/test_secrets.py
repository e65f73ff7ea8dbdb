"""What is taken for a secret by its name and its looks, and what is not."""

from each_row import each_row

from ci_evals.domain.agents import secrets_of
from ci_evals.support import secrets
from ci_evals.support.redaction import Redactor

SECRET = "x9-Kq7vT2mWz"


@each_row(("names", "values"), [
    (["STRIPE_KEY", "NPM_TOKEN", "client_secret", "PGPASSWORD", "DB_PASSWORD_2", "SENTRY_DSN", "GH_PAT",
      "MY-API-KEY", "apikey", "AWS_SECRET_ACCESS_KEY", "TOKEN"], [SECRET]),
    (["PATH", "HOME", "MONKEY", "INPUT_COMMENT-KEY", "CI_EVALS_COMMENT_KEY", "CACHE_KEY", "DEPLOY_PUBLIC_KEY",
      "KEY_FILE", "MAX_TOKENS", "PWD", "SSH_AUTH_SOCK"], []),
])  # fmt: skip
def test_only_variable_with_a_secret_like_name_is_a_secret(names, values):
    for name in names:
        assert list(secrets.in_environment({name: SECRET})) == values, name


def test_word_number_path_or_url_is_no_secret_but_a_long_mixed_case_value_is():
    """Or every mention of them would be redacted."""
    for value in (
        "postgres", "production", "correct horse battery staple", "0123456789", "/etc/ssl/k3y.pem",
        "./k3y.pem", "https://id.example/o4uth", "created_at", "Production", "s3cr3t!", "C:\\keys\\1.pem",
        "  ab1  ",
    ):  # fmt: skip
        assert list(secrets.in_environment({"DB_PASSWORD": value})) == [], value
    assert list(secrets.in_environment({"A_KEY": "aBcDeFgHiJkLmNoPqR"})) == ["aBcDeFgHiJkLmNoPqR"]


@each_row(("address", "found"), [
    (f"postgres://app:{SECRET}@db:5432/app", {SECRET}),
    (f"https://{SECRET}@github.com/a/b", {SECRET}),
    ("http://me:p%40ss-w0rd@proxy:3128", {"p%40ss-w0rd", "p@ss-w0rd"}),
    (f"https://host/v1?api-version=2024-02-01&code=1&apiKey={SECRET}", {SECRET}),
    (f"two: https://a:{SECRET}@b/, https://c/?sig=a%2Fb%3D1234", {SECRET, "a%2Fb%3D1234", "a/b=1234"}),
    ("postgres://postgres:postgres@db/app", set()),
    ("https://host/v1/path@2x9-abc", set()),
    ("mailto:someone@host", set()),
    ("http://localhost:8080/users/@me?to=me@4you", set()),
    (f"smtp://me@shop.example:{SECRET}@mail:25", {SECRET, f"me@shop.example:{SECRET}"}),
])  # fmt: skip
def test_passwords_and_tokens_in_addresses_are_secrets(address, found):
    assert set(secrets.in_addresses(address)) == found
    assert set(secrets.in_environment({"ANY": address})) == found


@each_row(
    "password",
    ["p4ss/word", "p4ss?word", "p4ss#word", "p4ss@word", "p4ss@w0/rd@x", "p4ss:word", "p4ss word",
     'p4ss"word', "p4ss'word", "p4ss<w>rd", "pässw0rd", "p4ss\\word"],
)  # fmt: skip
def test_database_password_with_special_characters_is_redacted(password):
    """Clients of databases take it up to an `@`, where a reader of addresses would end at some of these."""
    address = f"postgresql+psycopg://app:{password}@db:5432/shop"
    nested = secrets.in_addresses({"sql": [{"url": address}]})
    for result in (secrets.in_addresses(address), nested, secrets.in_environment({"DB": address})):
        shown = Redactor(values=result).text(f"could not connect: {address}")
        assert password not in shown
        assert "ss" not in shown.partition("app:")[2]


def test_secrets_in_adapter_options_are_found_at_any_depth():
    options = {
        "headers": {"X-Api-Key": "short-key", "Accept": "application/json", "Cookie": "{{key}}"},
        "query": {"key": SECRET, "api-version": "2024-02-01-preview"}, "password": "open sesame",
        "send": {
            "body": [{"accessToken": f"Bearer {SECRET}2", "text": "{{message}}", "token": "{{session}}"}]},
        "reply": {"text": "$.answers[0].text", "key": "$.data[0].key1"},
    }  # fmt: skip
    assert set(secrets_of(options)) == {"short-key", SECRET, f"Bearer {SECRET}2", f"{SECRET}2"}
    assert set(secrets_of(None)) == set(secrets_of({"keyHeader": "x-network-api-key-2f9a1c7e"})) == set()


@each_row("key", [
    "none", "None", " dummy ", "EMPTY", "null", "no-key", "sk-no-key-required", "not-needed", "lm-studio",
    "ollama", "x", "xxxx", "test", "test-key", "fake_api_key", "your-api-key", "n/a", "changeme", "sk-1234",
])  # fmt: skip
def test_placeholder_key_is_not_redacted(key):
    """People write it if a server on their own machine wants any key; reports may hold such a word."""
    assert secrets.is_dummy(key)
    assert Redactor(keys=[key]).text(f"It is {key.strip()} of ours") == f"It is {key.strip()} of ours"


def test_short_non_placeholder_key_counts_as_secret():
    for key in ("s3cr3t", "none4711", "my-dog-rex", "sk-proj-abc", "hunter2", "local-4f1c"):
        assert not secrets.is_dummy(key)
