"""The service behind a model: which addresses are one, and what is shown of them."""

import pytest
from each_row import each_row

from ci_evals.adapters.models.service import Service

BASE = "https://models.example/v1"


@each_row(
    ("address", "is_same"),
    [
        (BASE, True),
        (f"{BASE}/", True),
        ("HTTPS://Models.Example:443/v1", True),
        ("https://user:pass-word-77@models.example/v1", True),
        ("https://pass-word-77@models.example/v1", True),
        ("http://models.example/v1", False),
        ("https://models.example:8443/v1", False),
        ("https://models.example/pass-word-77/v1", False),
        ("https://other.example/v1", False),
        ("claude", False),
        ("claude 0123abcd", False),
    ],
)
def test_service_is_identified_by_host_and_path_without_credentials(address, is_same):
    """Credentials make no other service of it, and neither they nor a path are shown."""
    service = Service.at(address)
    assert (service.digest == Service.at(BASE).digest) is is_same
    assert "pass-word-77" not in service.shown
    assert address.lower().startswith(service.shown.partition("://")[0])


@pytest.mark.parametrize("address", [f"{BASE}?model=x", f"{BASE}?key=pass-word-77", f"{BASE}#x"])
def test_address_with_query_or_fragment_is_not_recognized_as_service(address):
    """A query may choose another model, and may hold a key: such a service is like no other."""
    assert Service.at(address) is None
