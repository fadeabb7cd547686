"""The section `cluster`: what attaches, and combinations that contradict each other."""

from typing import Any

import pytest

from whitewater.engines.config import Cluster
from whitewater.errors import ConfigError

ADDRESS = "tcp://127.0.0.1:8786"
TLS = {"tls_ca_file": "ca.pem", "tls_cert": "cert.pem", "tls_key": "key.pem"}


@pytest.mark.parametrize(
    ("given", "attached"),
    [
        ({}, False),
        ({"kind": "processes"}, False),
        ({"address": ADDRESS}, True),
        ({"scheduler_file": "cluster.json"}, True),
        ({"kind": "attach", "address": ADDRESS}, True),
        ({"address": "tls://127.0.0.1:8786", **TLS}, True),
        ({"scheduler_file": "cluster.json", **TLS}, True),
    ],
)
def test_an_address_or_a_scheduler_file_alone_attaches(given: dict[str, Any], attached: bool) -> None:
    assert Cluster(**given).attached is attached


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "attach"}, r"set cluster\.address or cluster\.scheduler_file"),
        ({"kind": "threads", "address": ADDRESS}, "kind is 'threads', but address names a cluster"),
        ({"kind": "processes", "scheduler_file": "x"}, "kind is 'processes', but scheduler_file names a cluster"),
        ({"address": ADDRESS, "scheduler_file": "x"}, "both set"),
        ({"address": "tls://127.0.0.1:8786"}, "for TLS, .* are needed: tls_ca_file and tls_cert and tls_key is empty"),
        ({"scheduler_file": "x", "tls_cert": "cert.pem"}, "tls_ca_file and tls_key is empty"),
        ({"address": ADDRESS, **TLS}, "TLS files are for"),
        (TLS, "TLS files are for"),
        ({"gpu_tasks": 0}, "greater than or equal to 1"),
    ],
)
def test_settings_that_contradict_each_other_are_one_error(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Cluster(**given)
