"""What a scenario with kernel modules brings: images, toolkits, definitions, and the operator with its rights."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509

from kubekit.oci.layers import open_image, read_folders
from kubekit.oci.layout import Layout
from runup.sandbox.scenario import folder as scenario
from runup.sandbox.scenario import kernelmodules, scenario_releases

NOW = datetime(2026, 11, 21, tzinfo=UTC)
KERNEL = "5.14.0-611.5.1.el9_7.x86_64"


def test_a_release_leads_to_its_kernel(tmp_path: Path) -> None:
    """By the driver toolkit that its image-references name, which says the kernel."""
    made = scenario.load(scenario.find("kernel-modules"))
    built = {each.version: each for each in scenario_releases.build(made, tmp_path, registry="127.0.0.1:1")}
    layout = Layout.open(tmp_path / "registry")
    image = open_image(layout, built["5.1.0"].built.digest)
    references = json.loads(read_folders(image, ("release-manifests",))["release-manifests/image-references"])
    [toolkit] = [tag["from"]["name"] for tag in references["spec"]["tags"] if tag["name"] == "driver-toolkit"]
    found = read_folders(open_image(layout, toolkit.partition("@")[2]), ("etc",))
    assert json.loads(found["etc/driver-toolkit-release.json"])["KERNEL_VERSION"] == KERNEL


def test_images_have_their_modules(tmp_path: Path) -> None:
    """Where modprobe looks, and a builder next to them; a scenario without any has none of it."""
    made = scenario.load(scenario.find("kernel-modules"))
    kernelmodules.build(tmp_path, made)
    layout = Layout.open(tmp_path)
    assert list(read_folders(open_image(layout, f"good-{KERNEL}"), ("opt",))) == [f"opt/lib/modules/{KERNEL}/good.ko"]
    assert list(read_folders(open_image(layout, "builder"), ("usr",))) == ["usr/bin/buildah"]
    clean = scenario.load(scenario.find("clean"))
    kernelmodules.build(tmp_path / "clean", clean)
    assert not (tmp_path / "clean").exists()
    assert kernelmodules.objects(clean, NOW) == []


def test_the_operator_is_that_of_the_manifests() -> None:
    """Its account and rights as they are deployed; image, port, builder and certificate are the sandbox's."""
    objects = kernelmodules.objects(scenario.load(scenario.find("kernel-modules")), NOW)
    assert {"ServiceAccount", "ClusterRole", "Deployment", "Namespace", "Service"} <= {each["kind"] for each in objects}
    [deployment] = [each for each in objects if each["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    [port] = container["ports"]
    assert container["args"][:2] == ["kernel-module-preflight", f"--listen=127.0.0.1:{port['containerPort']}"]
    filled = kernelmodules.filled(container, kernelmodules.values("127.0.0.1:1/runup/release@sha256:0", b"{}"))
    assert filled["image"] == "127.0.0.1:1/runup/release@sha256:0"
    variables = {each["name"]: each.get("value") for each in filled["env"]}
    assert variables["RELATED_IMAGE_BUILD"] == "127.0.0.1:1/runup/kernel-modules:builder"


def test_the_definitions_trust_the_operators_certificate() -> None:
    """They ask where it listens, and the authority that they carry has signed its certificate for that address."""
    objects = kernelmodules.objects(scenario.load(scenario.find("kernel-modules")), NOW)
    [secret] = [each for each in objects if each["kind"] == "Secret"]
    certificate = x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["tls.crt"]))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert ip_address("127.0.0.1") in names.get_values_for_type(x509.IPAddress)
    [deployment] = [each for each in objects if each["kind"] == "Deployment"]
    [port] = deployment["spec"]["template"]["spec"]["containers"][0]["ports"]
    asked = [each["spec"]["conversion"]["webhook"] for each in objects if "conversion" in each.get("spec", {})]
    assert len(asked) == 2
    for webhook in asked:
        assert webhook["clientConfig"]["url"] == f"https://127.0.0.1:{port['containerPort']}/convert"
        bundle = base64.b64decode(webhook["clientConfig"]["caBundle"])
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(bundle))
