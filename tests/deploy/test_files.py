"""Files for other programs: each is valid for the program that reads it."""

import ipaddress
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from frontdesk.settings import Settings
from tests.crash.harness import COMMAND
from tests.deploy.installing import ROOT
from tests.deploy.programs import need, run

pytestmark = pytest.mark.heavy

UNITS = ROOT / "deploy" / "systemd"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").iterdir())


def test_workflows_fit_their_schema_and_have_no_known_weakness(tools: Path) -> None:
    run(tools / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)
    run(tools / "zizmor", "--offline", "--min-severity", "medium", *WORKFLOWS)


def test_nothing_is_released_with_a_known_vulnerability_or_on_a_base_without_a_digest() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    assert "make audit" in [step.get("run") for step in jobs["audit"]["steps"]]
    published = {name for name, job in jobs.items() if job.get("environment") == "release"}
    assert published
    for name in published:
        assert jobs[name]["needs"] == "packages"
    assert set(jobs["packages"]["needs"]) == {"test", "audit"}
    (build,) = (step for step in jobs["publish-image"]["steps"] if step.get("id") == "image")
    assert build["with"]["build-args"] == "BASE=${{ steps.base.outputs.image }}"
    audit = (ROOT / "Makefile").read_text().partition("\naudit:")[2].partition("\n\n")[0]
    assert all("--require-hashes" in line for line in audit.splitlines() if "pip" in line and "install" in line)


def test_every_image_of_the_compose_file_can_be_named_by_its_digest() -> None:
    services = yaml.safe_load((ROOT / "deploy" / "compose" / "compose.yaml").read_text())["services"]
    named = [service["image"] for service in services.values() if "build" not in service]
    named += [service["build"]["args"]["BASE"] for service in services.values() if "build" in service]
    guide = (ROOT / "docs" / "users" / "deploy.md").read_text()
    for image in named:
        variable, _, default = image.removeprefix("${").removesuffix("}").partition(":-")
        assert f"`{variable}={default}@sha256:...`" in guide


def test_the_dockerfile_has_no_findings(tools: Path) -> None:
    assert run(tools / "hadolint", ROOT / "deploy" / "image" / "Dockerfile") == ""


def test_the_compose_file_fits_its_schema(tools: Path) -> None:
    compose = ROOT / "deploy" / "compose" / "compose.yaml"
    run(tools / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", compose)


def test_the_proxy_of_the_compose_file_meets_the_service_where_its_address_alone_is_trusted() -> None:
    compose = yaml.safe_load((ROOT / "deploy" / "compose" / "compose.yaml").read_text())
    service, proxy = compose["services"]["frontdesk"], compose["services"]["proxy"]
    (shared,) = set(service["networks"]) & set(proxy["networks"])  # Docker may resolve the name on any of several
    assert service["environment"]["FRONTDESK_TRUSTED_PROXIES"] == proxy["networks"][shared]["ipv4_address"]
    (pool,) = compose["networks"][shared]["ipam"]["config"]
    trusted = ipaddress.ip_address(service["environment"]["FRONTDESK_TRUSTED_PROXIES"])
    assert trusted in ipaddress.ip_network(pool["subnet"])
    assert trusted not in ipaddress.ip_network(pool["ip_range"]), "no other container gets it"


def test_manifests_of_kubernetes_are_valid(tools: Path) -> None:
    folder = ROOT / "deploy" / "kubernetes"
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    manifests = [folder / name for name in kustomization["resources"]]
    assert sorted([*manifests, folder / "kustomization.yaml"]) == sorted(folder.iterdir())
    run(tools / "kubernetes-validate", "--strict", *manifests)
    configuration = dict(literal.split("=", 1) for literal in kustomization["configMapGenerator"][0]["literals"])
    assert {name.removeprefix("FRONTDESK_").lower() for name in configuration} <= Settings.model_fields.keys()


def test_the_guide_to_a_moment_stops_the_cluster_itself() -> None:
    guide = (ROOT / "docs" / "users" / "deploy.md").read_text()
    (version, cluster) = re.findall(r"/etc/postgresql/(\d+)/(\w+)/conf\.d", guide)[0]
    # Debian's unit `postgresql` only groups those of the clusters: stopping it returns before they have stopped.
    units = re.findall(r"systemctl (?:stop|start|restart) (postgresql\S*)", guide)
    assert set(units) == {f"postgresql@{version}-{cluster}"}


def test_the_certificate_of_kubernetes_is_somebody_s_task_and_prometheus_may_scrape() -> None:
    folder = ROOT / "deploy" / "kubernetes"
    ingress, policy = (yaml.safe_load((folder / f"{name}.yaml").read_text()) for name in ("ingress", "networkpolicy"))
    (tls,) = ingress["spec"]["tls"]
    assert "cert-manager.io/cluster-issuer" in ingress["metadata"]["annotations"]
    guide = (ROOT / "docs" / "users" / "deploy.md").read_text()
    assert f"create secret tls {tls['secretName']} " in guide
    (rule,) = policy["spec"]["ingress"]
    allowed = [peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for peer in rule["from"]]
    assert allowed == ["ingress-nginx", "monitoring"]
    assert rule["ports"] == [{"port": "http"}]
    assert "--from-literal" not in guide, "arguments can be read by every user"


@pytest.mark.parametrize("unit", sorted(path.name for path in UNITS.iterdir()))
def test_units_of_systemd_are_valid_and_hardened(unit: str, tmp_path: Path) -> None:
    need("systemd-analyze")
    for path in UNITS.iterdir():  # systemd looks for the programs that units name
        (tmp_path / path.name).write_text(path.read_text().replace("/opt/frontdesk/bin/frontdesk", COMMAND))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / unit], capture_output=True, text=True, timeout=60
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    if unit.endswith(".service"):
        run("systemd-analyze", "security", "--offline=true", "--threshold=15", tmp_path / unit)  # an exposure of 1.5
