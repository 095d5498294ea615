"""What web servers of BMCs do: redirects, forms of an ETag, encodings, log-ins, certificates."""

from __future__ import annotations

import gzip
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.emulators.bmc.certificates import Authority
from tests.emulators.bmc.http_faults import BODIES, ETAGS
from tests.emulators.bmc.machine import Machine
from tests.emulators.bmc.server import PASSWORD, USER, Emulator
from tests.fixtures.shells import remote_shell

from proofmark.machine.bmc.back_end import BackEndContext, Credentials, Host, back_end
from proofmark.machine.bmc.backends.redfish import Etags, conditions
from proofmark.machine.bmc.client import MAX_REDIRECTS, follow
from proofmark.machine.bmc.https import (
    LARGEST,
    POLICY,
    HttpsConnection,
    ProtocolError,
    _decoded,
    tls_context,
)
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.packages.survey import collection
from proofmark.packages.survey.collection import vendor_of
from proofmark.site.firmware import Firmware

WANTED = {"ClusterMode": "SNC-4"}
Change = Callable[..., Machine]


@pytest.fixture
def change(tmp_path: Path) -> Iterator[Change]:
    """Return a function that changes a setting of an emulated BMC with a fault, and resets it."""
    with ExitStack() as stack:

        def act(fault: str, auth: str = "basic") -> Machine:
            emulator = stack.enter_context(Emulator(["n1"], tmp_path, faults={"n1": fault}))
            act.emulator = emulator  # type: ignore[attr-defined]
            firmware = Firmware.model_validate(
                {
                    "back_end": "redfish",
                    "bmc": "x",
                    "port": emulator.port,
                    "ca": f"{emulator.ca}",
                    "auth": auth,
                    "timeout_s": 20,
                    "attributes": {},
                    "remote_shell": emulator.remote_shell,
                }
            )
            shell = remote_shell(firmware.remote_shell, 20)
            chosen = back_end(BackEndContext(firmware, Credentials(USER, PASSWORD), shell))
            host = Host("n1", emulator.address("n1"))
            state = chosen.read(host, WANTED)
            chosen.stage(host, state, WANTED)
            chosen.reset(host, state, WANTED)
            return emulator.machines["n1"]

        yield act


def refusal(change: Change, fault: str, auth: str = "basic") -> NodeError:
    """Return why the change was refused; the BMC must be unchanged."""
    with pytest.raises(NodeError) as caught:
        change(fault, auth)
    machine = change.emulator.machines["n1"]  # type: ignore[attr-defined]
    assert (machine.patches, machine.resets) == (0, 0)
    return caught.value


class TestRedirects:
    def test_without_redirects(self, change: Change) -> None:
        """Control: no fault is injected."""
        machine = change("")
        assert (machine.patches, machine.resets) == (1, 1)

    @pytest.mark.fault("bmc-redirects")
    @pytest.mark.parametrize("auth", ["basic", "session"])
    @pytest.mark.parametrize(
        "fault", ["redirect-308", "redirect-307", "redirect-301", "redirect-relative"]
    )
    def test_each_request_follows_a_redirect_on_its_bmc(
        self, change: Change, fault: str, auth: str
    ) -> None:
        machine = change(fault, auth)
        assert (machine.patches, machine.resets) == (1, 1)
        assert change.emulator.sessions == 0  # type: ignore[attr-defined]

    @pytest.mark.fault("bmc-redirects-away")
    @pytest.mark.parametrize(
        ("fault", "words"),
        [
            ("redirect-host", "status 308 to https://127.9.255.1:"),
            ("redirect-port", "status 307 to https://127.9.0.1:1/"),
            ("redirect-http", "status 308 to http://127.9.0.1:"),
        ],
    )
    @pytest.mark.parametrize("auth", ["basic", "session"])
    def test_a_redirect_to_another_host_port_or_scheme_is_refused(
        self, change: Change, fault: str, words: str, auth: str
    ) -> None:
        error = refusal(change, fault, auth)
        assert error.outcome is Outcome.UNEXPECTED
        assert words in error.text and "the password is sent to no other host" in error.text

    @pytest.mark.fault("bmc-redirects")
    def test_a_loop_ends(self, change: Change) -> None:
        assert f"more than {MAX_REDIRECTS} redirects" in refusal(change, "redirect-loop").text
        machine = change.emulator.machines["n1"]  # type: ignore[attr-defined]
        assert machine.requests == MAX_REDIRECTS + 1

    def test_a_redirect_that_changes_the_method_is_not_followed(self, change: Change) -> None:
        assert ": 302" in refusal(change, "redirect-302").text

    @pytest.mark.parametrize(
        ("location", "target"),
        [
            ("/b/", "/b/"),
            ("b?x=1#y", "/a/b?x=1"),
            ("https://BMC.site:8443/b", "/b"),
            ("https://bmc.site.:8443/b", "/b"),
            ("https://bmc.site/b", ""),
            ("https://bmc.site:8443@evil/b", ""),
            ("https://user@bmc.site:8443/b", ""),
            ("//evil/b", ""),
            ("///b", "/b"),
            ("https://bmc.site:x/b", ""),
            ("https://[/b", ""),
            ("file:///etc/passwd", ""),
            ("/b c", ""),
        ],
    )
    def test_locations(self, location: str, target: str) -> None:
        paths: list[str] = []

        def send(path: str) -> tuple[int, dict[str, str], bytes]:
            paths.append(path)
            return (308 if len(paths) == 1 else 200), {"location": location}, b""

        with ExitStack() if target else pytest.raises(ProtocolError):
            follow(send, "PATCH", "/a/x", "bmc.site", 8443)
        assert paths == (["/a/x", target] if target else ["/a/x"])

    def test_an_address_of_ipv6(self) -> None:
        answers = iter([(308, {"location": "https://[fd00::1]/b"}, b""), (200, {}, b"")])
        assert follow(lambda _: next(answers), "GET", "/a", "fd00::1", 443)[0] == 200

    def test_the_service_root_follows_one_too(self, tmp_path: Path) -> None:
        faults = {"n1": "redirect-308", "n2": "redirect-host"}
        root = {"Vendor": "HPE", "Product": "ProLiant"}
        with Emulator(["n1", "n2"], tmp_path, faults=faults, service_root=root) as emulator:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(collection, "ROOT", "/redfish/v1")
                found = vendor_of(emulator.address("n1"), emulator.port)
                assert found == "HPE ProLiant"
            with pytest.raises(NodeError, match="status 308"):
                vendor_of(emulator.address("n2"), emulator.port)


class TestEtags:
    @pytest.mark.fault("bmc-etag-forms")
    @pytest.mark.parametrize("fault", ETAGS)
    def test_each_form_is_accepted(self, change: Change, fault: str) -> None:
        machine = change(fault)
        assert (machine.patches, machine.resets) == (1, 1)

    @pytest.mark.fault("bmc-etag-forms")
    def test_a_change_of_another_client_is_still_found(self, change: Change) -> None:
        error = refusal(change, "race-foreign")
        assert error.outcome is Outcome.FOREIGN_PENDING
        assert "another client has set since the check: Turbo=Disabled" in error.text

    def test_the_order_of_the_forms(self) -> None:
        def sent(header: str, body: str) -> list[str | None]:
            return [each.get("If-Match") for each in conditions(Etags(header, body))]

        assert sent('"a"', "") == ['"a"', "a", "*", None]
        assert sent('W/"a"', "") == ['W/"a"', '"a"', "a", "*", None]
        assert sent('""a""', '"a"') == ['""a""', '"a"', "a", "*", None]
        assert sent("", 'W/"a"') == ['W/"a"', '"a"', "a", "*", None]
        assert sent("", "") == [None, "*"]
        assert sent("*", "") == ["*", '"*"', None]
        assert sent("a\r\nX: y", "") == [None, "*"]


class TestBodies:
    @pytest.mark.parametrize("fault", BODIES)
    def test_each_encoding_is_read(self, change: Change, fault: str) -> None:
        assert change(fault).patches == 1

    def test_damaged_and_unknown_encodings_are_refused(self) -> None:
        bomb = gzip.compress(bytes(LARGEST + 1))
        for raw, encoding, words in (
            (b"{}", "br", "found br; accepted: identity, gzip"),
            (b"{}", "gzip", "Content-Encoding gzip: "),
            (gzip.compress(b"{}")[:-9], "gzip", "the end is missing"),
            (bomb, "gzip", f"more than {LARGEST} bytes"),
        ):
            with pytest.raises(ProtocolError, match=words):
                _decoded(raw, encoding)
        assert _decoded(b"", "gzip") == b""
        assert _decoded(b"{}", "Identity") == b"{}"


class TestLogIn:
    @pytest.mark.parametrize(
        "fault",
        ["", "session-only", "session-address", "session-relative", "session-in-body"],
    )
    def test_a_session_ends_wherever_its_location_is(self, change: Change, fault: str) -> None:
        assert change(fault, "session").patches == 1
        assert change.emulator.sessions == 0  # type: ignore[attr-defined]

    def test_another_challenge_is_named(self, change: Change) -> None:
        error = refusal(change, "session-only")
        assert error.outcome is Outcome.DENIED
        assert "X-Auth-Token" in error.text and "firmware.auth: session" in error.text


ADDRESS = "127.9.9.8"


@dataclass(frozen=True)
class Chain:
    """The certificate of a BMC with its key, and the file that a site trusts."""

    certificate: Path
    key: Path
    ca: Path


@contextmanager
def serving(chain: Chain) -> Iterator[int]:
    """Yield the port of a server that makes handshakes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain.certificate, chain.key)
    with socket.create_server((ADDRESS, 0)) as server:

        def accept() -> None:
            bare, _ = server.accept()
            with bare, suppress(OSError), context.wrap_socket(bare, server_side=True) as made:
                made.recv(1)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


def shakes_hands(chain: Chain, context: ssl.SSLContext) -> str:
    """Return why the certificate is refused; empty if it is accepted."""
    with serving(chain) as port:
        try:
            HttpsConnection(ADDRESS, port, context, 10).close()
        except ssl.SSLCertVerificationError as error:
            return error.verify_message
    return ""


def by_authority(folder: Path, *, identified: bool, usage: bool) -> Chain:
    authority = Authority(folder, identified=identified, usage=usage)
    return Chain(authority.certificate(ADDRESS), authority.key, authority.ca)


def of_its_own(folder: Path) -> Chain:
    """Return a BMC whose own certificate the site trusts, as many vendors deliver it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, ADDRESS)])
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(ADDRESS))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(alternative, critical=False)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir()
    pem, secret = folder / "bmc.pem", folder / "bmc.key"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return Chain(pem, secret, pem)


class TestCertificates:
    """The policy of `https`: the same result with each version of Python."""

    @pytest.fixture(params=["default", "strict", "partial", "none"])
    def python(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let Python have other flags by default: each context begins with all or none of them."""
        default = ssl.create_default_context
        flags = {
            "strict": ssl.VerifyFlags.VERIFY_X509_STRICT
            | ssl.VerifyFlags.VERIFY_X509_TRUSTED_FIRST,
            "partial": ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
            | ssl.VerifyFlags.VERIFY_X509_STRICT,
            "none": ssl.VerifyFlags(0),
        }.get(request.param)

        def create(cafile: str | None = None) -> ssl.SSLContext:
            context = default(cafile=cafile)
            if flags is not None:
                context.verify_flags = flags
            return context

        monkeypatch.setattr(ssl, "create_default_context", create)

    @pytest.mark.usefixtures("python")
    @pytest.mark.parametrize("identified", [True, False])
    @pytest.mark.parametrize("usage", [True, False])
    def test_key_identifiers_and_key_usage_are_not_needed(
        self, tmp_path: Path, identified: bool, usage: bool
    ) -> None:
        chain = by_authority(tmp_path / "a", identified=identified, usage=usage)
        context = tls_context(f"{chain.ca}", verify=True)
        assert context.verify_flags == POLICY
        assert shakes_hands(chain, context) == ""

    @pytest.mark.usefixtures("python")
    def test_the_file_may_have_the_certificate_of_the_bmc_itself(self, tmp_path: Path) -> None:
        chain = of_its_own(tmp_path / "own")
        assert shakes_hands(chain, tls_context(f"{chain.ca}", verify=True)) == ""
        signed = by_authority(tmp_path / "a", identified=False, usage=True)
        pinned = Chain(signed.certificate, signed.key, signed.certificate)
        assert shakes_hands(pinned, tls_context(f"{pinned.ca}", verify=True)) == ""

    @pytest.mark.usefixtures("python")
    @pytest.mark.fault("bmc-expired-certificate")
    def test_signature_dates_and_name_are_checked(self, tmp_path: Path) -> None:
        """Control: certificates of the same kind are accepted in the tests above."""
        authority = Authority(tmp_path / "a", identified=False)
        other = Authority(tmp_path / "b", identified=False)
        good, key = authority.certificate(ADDRESS), authority.key
        named = authority.certificate("127.9.9.7")
        trusted = tls_context(f"{authority.ca}", verify=True)
        assert "address mismatch" in shakes_hands(Chain(named, key, authority.ca), trusted)
        foreign = tls_context(f"{other.ca}", verify=True)
        assert shakes_hands(Chain(good, key, other.ca), foreign) != ""
        expired = authority.certificate(ADDRESS, expired=True)
        assert "expired" in shakes_hands(Chain(expired, key, authority.ca), trusted)
        assert shakes_hands(of_its_own(tmp_path / "own"), trusted) != ""

    def test_the_strict_flag_would_refuse_them(self, tmp_path: Path) -> None:
        """Control: the difference between the versions of Python is this flag."""
        chain = by_authority(tmp_path / "a", identified=False, usage=True)
        context = tls_context(f"{chain.ca}", verify=True)
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
        assert "Authority Key Identifier" in shakes_hands(chain, context)

    def test_the_certificates_of_the_tests_are_strict(self, tmp_path: Path) -> None:
        chain = by_authority(tmp_path / "a", identified=True, usage=True)
        context = tls_context(f"{chain.ca}", verify=True)
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
        assert shakes_hands(chain, context) == ""
