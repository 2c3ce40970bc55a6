"""The Helm chart: its values and schema in the default run; in the nightly one it is linted, rendered and compared
with the schemas of Kubernetes, with everything turned on and with as little as possible.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from plansurvive.runtime.feature_settings import PREFIX
from plansurvive.runtime.settings import names
from tests.deploy.helm import CHART, KUBERNETES, ROOT, helm, rendered, run

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
LEAST: dict[str, Any] = {"temporal": {"address": "temporal:7233"}}
GPU = deepcopy(VALUES["workers"][0]) | {
    "name": "gpu", "queue": "gpu", "replicas": 1, "queues": ["lab"], "env": {"PLANS_LIMIT_CPU": 600},
    "nodeSelector": {"gpu": "yes"}, "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "workspace": {"existingClaim": "gpu-files"},
}  # fmt: skip
MOST: dict[str, Any] = {
    "image": {"worker": {"digest": "sha256:" + "0" * 64}, "pullSecrets": [{"name": "registry"}]},
    "temporal": {"address": "t:7233", "apiKeySecret": "cloud", "tlsSecret": "tls", "tlsCa": True},
    "workers": [VALUES["workers"][0], GPU],
    "storage": "s3://values",
    "env": {"PLANS_EDITS": "strict"},
    "envFromSecrets": ["aws"],
    "files": {"secretName": "files", "settings": {"PLANS_MCP": "mcp.toml", "PLANS_KEYS": "keys"}},
    "llm": {"baseUrl": "https://llm.example/v1", "model": "m", "apiKeySecret": "llm"},
    "web": {
        "enabled": True,
        "url": "https://plans.example",
        "oidc": {"issuer": "https://id.example", "clientId": "plans", "secretName": "oidc"},
        "roles": "*=viewer",
        "ingress": {"enabled": True, "className": "nginx", "annotations": {"a/b": "c"}, "tlsSecret": "page-tls"},
    },
    "networkPolicy": {"webFrom": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}]},
    "podAnnotations": {"example.com/a": "b"},
    "podLabels": {"team": "data"},
}
CASES = {"least": LEAST, "most": MOST}


@pytest.fixture
def built() -> None:
    """Helm, or the test is left out with the reason."""
    if helm() is None:
        pytest.skip("Helm is not installed, and there is no Go to build it")


def test_the_values_of_the_chart_are_as_its_schema_says() -> None:
    jsonschema.validate(VALUES, SCHEMA)
    wrong: list[dict[str, Any]] = [{"worker": []}, {"approvals": "lax"}, {"workers": []}]
    for changes in wrong:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(VALUES | changes, SCHEMA)


def test_each_variable_that_the_chart_sets_is_a_setting() -> None:
    texts = [each.read_text() for each in (CHART / "templates").iterdir()] + [(CHART / "values.yaml").read_text()]
    named = set(re.findall(rf"\b{PREFIX}[A-Z_]+\b", "".join(texts)))
    assert len(named) > 15
    assert {name for name in named if name.removeprefix(PREFIX).lower() not in names()} == set()


def test_the_chart_has_the_version_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert f'version = "{chart["appVersion"]}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("case", sorted(CASES))
def test_helm_finds_nothing_wrong(case: str) -> None:
    done = run("lint", "--strict", str(CHART), values=CASES[case])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("case", sorted(CASES))
def test_every_object_is_as_kubernetes_wants_it(case: str) -> None:
    objects = rendered(CASES[case])
    for each in objects:
        kubernetes_validate.validate(each, KUBERNETES.rpartition(".")[0], strict=True)
    wrong = deepcopy(next(each for each in objects if each["kind"] == "Deployment"))
    wrong["spec"]["template"]["spec"]["containers"][0]["enviroment"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES.rpartition(".")[0], strict=True)


def _pods(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for each in objects:
        if each["kind"] == "Deployment":
            yield each["metadata"]["name"], each["spec"]["template"]["spec"]


@pytest.mark.slow
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("case", sorted(CASES))
def test_every_pod_is_confined_bounded_and_probed(case: str) -> None:
    pods = dict(_pods(rendered(CASES[case])))
    assert set(pods) == ({"plans-default"} if case == "least" else {"plans-default", "plans-gpu", "plans-web"})
    for name, pod in pods.items():
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["automountServiceAccountToken"] is False, name
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True, name
            assert security["allowPrivilegeEscalation"] is False, name
            assert security["capabilities"] == {"drop": ["ALL"]}, name
            assert container["resources"]["requests"]["cpu"], name
            assert container["resources"]["limits"]["memory"], name
        (main,) = pod["containers"]
        assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(main), name
        mounted = {each["name"] for each in main["volumeMounts"]}
        assert mounted <= {each["name"] for each in pod["volumes"]}, name
        assert len({each["name"] for each in main["env"]}) == len(main["env"]), name
    assert pods["plans-default"]["terminationGracePeriodSeconds"] == VALUES["workers"][0]["grace"] + 15


@pytest.mark.slow
@pytest.mark.usefixtures("built")
def test_each_queue_has_workers_a_workspace_and_a_budget_of_its_own() -> None:
    objects = rendered(MOST)
    pods = dict(_pods(objects))
    queues = {
        name: {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}["PLANS_TASK_QUEUE"]
        for name, pod in pods.items()
    }
    assert queues == {"plans-default": "plans", "plans-gpu": "gpu", "plans-web": "plans"}
    claims = {name: _claim(pod, "workspace") for name, pod in pods.items()}
    assert claims == {
        "plans-default": "plans-default-workspace", "plans-gpu": "gpu-files", "plans-web": "plans-default-workspace",
    }  # fmt: skip
    assert {_claim(pod, "state") for pod in pods.values()} == {"plans-state"}
    budgets = [each["metadata"]["name"] for each in objects if each["kind"] == "PodDisruptionBudget"]
    assert budgets == ["plans-default"]  # one pod alone could never be moved


def _claim(pod: dict[str, Any], volume: str) -> str:
    found = next(each for each in pod["volumes"] if each["name"] == volume)
    return str(found["persistentVolumeClaim"]["claimName"])


@pytest.mark.slow
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"temporal": {"address": ""}}, "temporal.address is required"),
        ({"web": {"enabled": True}}, "web.url is required"),
        ({"web": {"enabled": True, "url": "https://plans.example"}}, "the page needs a login"),
        ({"wrokers": []}, "wrokers"),
        ({"approvals": "lax"}, "approvals"),
    ],
    ids=["no server", "a page without an address", "a page without a login", "a misspelt name", "a wrong choice"],
)
def test_values_that_cannot_work_are_refused_with_the_reason(change: dict[str, Any], said: str) -> None:
    done = run("template", "plans", str(CHART), "--kube-version", KUBERNETES, values=LEAST | change)
    assert done.returncode != 0
    assert said in done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("built")
def test_no_secret_is_in_an_object_and_none_is_needed_in_the_values() -> None:
    for each in rendered(MOST):
        assert each["kind"] != "Secret"
    secret = [each for _, pod in _pods(rendered(MOST)) for each in pod["containers"][0]["env"] if "valueFrom" in each]
    assert {each["name"] for each in secret} == {"TEMPORAL_API_KEY", "OPENAI_API_KEY", "OIDC_SECRET"}
