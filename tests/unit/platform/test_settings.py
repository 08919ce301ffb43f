"""Laws of the settings."""

from __future__ import annotations

import json
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline_runtime.settings import Settings, SettingsError


def read(tmp_path: Path, **environ: str) -> Settings:
    return Settings.from_env({"FOGLINE_DATA": str(tmp_path / "data"), **environ})


def test_an_empty_environment_runs_everything_on_this_machine(tmp_path: Path) -> None:
    settings = read(tmp_path)
    assert settings.kafka_embedded
    assert settings.redis_embedded
    assert settings.kafka == "127.0.0.1:19092"
    assert re.fullmatch(r"redis://:[0-9a-f]{64}@127.0.0.1:16379/0", settings.redis_url)
    assert settings.redis_url == read(tmp_path).redis_url, "all processes of a data directory agree"
    assert settings.data.stat().st_mode & 0o777 == 0o700
    assert settings.database_url == f"sqlite:///{tmp_path / 'data' / 'fogline.sqlite3'}"
    assert settings.nodes == ("edge-a", "edge-b", "cloud")
    assert [settings.local_node_port(name) for name in settings.nodes] == [18110, 18111, 18112]
    assert settings.demo


def test_given_services_are_not_embedded(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        FOGLINE_KAFKA="broker-1:9092,broker-2:9092",
        FOGLINE_KAFKA_SECURITY='{"security_protocol": "SSL", "ssl_cafile": "/etc/ca.pem"}',
        REDIS_URL="rediss://user:pass@cache:6379/1",
        DATABASE_URL="postgres://fogline@database/fogline",
    )
    assert (settings.kafka_embedded, settings.redis_embedded) == (False, False)
    assert settings.kafka == "broker-1:9092,broker-2:9092"
    assert settings.kafka_security == {"security_protocol": "SSL", "ssl_cafile": "/etc/ca.pem"}
    assert settings.redis_url == "rediss://user:pass@cache:6379/1"
    assert settings.database_url == "postgres://fogline@database/fogline"


def test_secrets_are_made_once_and_only_for_the_owner(tmp_path: Path) -> None:
    first, second = read(tmp_path), read(tmp_path)
    assert first.secret_key == second.secret_key
    assert first.cluster_key == second.cluster_key
    assert first.secret_key != first.cluster_key
    path = tmp_path / "data" / "secrets.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["secrets.json"]


def test_processes_that_start_together_agree_on_the_secrets(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        keys = list(pool.map(lambda _: read(tmp_path).secret_key, range(64)))
    assert len(set(keys)) == 1


def test_given_secrets_write_nothing(tmp_path: Path) -> None:
    settings = read(tmp_path, FOGLINE_SECRET_KEY="a" * 40, FOGLINE_CLUSTER_KEY="b" * 40)
    assert (settings.secret_key, settings.cluster_key) == ("a" * 40, "b" * 40)
    assert not (tmp_path / "data").exists()


def test_no_secret_is_shown(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        FOGLINE_KAFKA_SECURITY='{"sasl_plain_password": "hidden-1"}',
        REDIS_URL="redis://:hidden-2@cache/0",
        DATABASE_URL="postgres://fogline:hidden-3@database/fogline",
        FOGLINE_SECRET_KEY="hidden-4",
    )
    assert "hidden" not in repr(settings)
    assert settings.cluster_key not in repr(settings)
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, FOGLINE_KAFKA_SECURITY='{"sasl_plain_password": "hidden-5"')
    assert "hidden" not in str(caught.value.faults)
    assert "FOGLINE_KAFKA_SECURITY" in str(caught.value.faults)


def test_all_faults_are_told_and_nothing_is_created(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        read(
            tmp_path,
            FOGLINE_PORT="http",
            FOGLINE_KAFKA_PORT="65535",
            FOGLINE_KAFKA_SECURITY="[1]",
            FOGLINE_NODES="edge-a,Edge B",
            FOGLINE_SILENCE_S="-1",
            FOGLINE_CHECKPOINT_BATCHES="1.5",
            FOGLINE_CHECKPOINTS_KEPT="0",
            FOGLINE_TRIM_S="-1",
            FOGLINE_RESTORE="perhaps",
            FOGLINE_STANDBY_S="-1",
            FOGLINE_LEAVE_S="-1",
            FOGLINE_LOG="loud",
            FOGLINE_HTTPS="perhaps",
            FOGLINE_UPLOAD_BYTES_MAX="1 GiB",
            FOGLINE_DEMO="perhaps",
        )
    named = [fault.split("=")[0] for fault in caught.value.faults]
    assert sorted(named) == [
        "FOGLINE_CHECKPOINTS_KEPT",
        "FOGLINE_CHECKPOINT_BATCHES",
        "FOGLINE_DEMO",
        "FOGLINE_HTTPS",
        "FOGLINE_KAFKA_PORT",  # its controller needs the next port
        "FOGLINE_KAFKA_SECURITY",
        "FOGLINE_LEAVE_S",
        "FOGLINE_LOG",
        "FOGLINE_NODES",
        "FOGLINE_PORT",
        "FOGLINE_RESTORE",
        "FOGLINE_SILENCE_S",
        "FOGLINE_STANDBY_S",
        "FOGLINE_TRIM_S",
        "FOGLINE_UPLOAD_BYTES_MAX",
    ]
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("name", ["-edge", "edge-", "Edge", "edge_a", "edge/../a", "a" * 41])
def test_a_node_name_is_safe_in_paths_queues_and_urls(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError):
        read(tmp_path, FOGLINE_NODE=name)


def test_silence_is_acted_on_soon_and_no_old_owner_needs_to_stay(tmp_path: Path) -> None:
    assert (read(tmp_path).silence_s, read(tmp_path).restore) == (3.0, "auto")
    settings = read(tmp_path, FOGLINE_RESTORE="Manual", FOGLINE_STANDBY_S="0")
    assert (settings.restore, settings.standby_s) == ("manual", 0.0)


def test_no_nodes_may_be_wanted_here(tmp_path: Path) -> None:
    assert read(tmp_path, FOGLINE_NODES="").nodes == ()


def test_a_damaged_secrets_file_is_reported_and_kept(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "secrets.json"
    path.write_text(json.dumps({"secret_key": "x"}))
    with pytest.raises(SettingsError, match="damaged"):
        read(tmp_path)
    assert json.loads(path.read_text()) == {"secret_key": "x"}


def test_host_names_are_separated_by_commas_with_or_without_spaces(tmp_path: Path) -> None:
    assert read(tmp_path).allowed_hosts == ()
    assert read(tmp_path, FOGLINE_ALLOWED_HOSTS="a.example, b.example,").allowed_hosts == (
        "a.example",
        "b.example",
    )


def test_the_token_for_metrics_is_not_shown(tmp_path: Path) -> None:
    settings = read(tmp_path, FOGLINE_METRICS_TOKEN="hidden-token")
    assert settings.metrics_token == "hidden-token"
    assert "hidden-token" not in repr(settings)
