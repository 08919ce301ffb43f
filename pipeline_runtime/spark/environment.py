"""The environment variables of a node's processes: those that they need, and no secret.

Java, and every Python process that Java starts, inherits the node's environment. A user may have put the
cluster key and the passwords of Redis and Kafka there. The gate tells readers how to reach Kafka.
"""

from __future__ import annotations

from collections.abc import MutableMapping

_NAMES = frozenset(
    {
        # of the system
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP"),
        *("LD_LIBRARY_PATH", "XDG_CACHE_HOME", "MALLOC_ARENA_MAX", "OMP_NUM_THREADS"),
        # of Java
        *("JAVA_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "HADOOP_USER_NAME"),
        # files that Kafka's clients and OpenSSL look for
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "KRB5_CONFIG", "KRB5CCNAME", "KRB5_CLIENT_KTNAME"),
        # of spark.session, spark.jars and spark.zygote
        *("FOGLINE_JAVA_OPTIONS", "FOGLINE_IVY_SETTINGS", "FOGLINE_WORKER_PYTHON", "FOGLINE_WORKER_PATH"),
        *("FOGLINE_WORKER_START", "FOGLINE_WORKER_ZYGOTE"),
    }
)
_PREFIXES = ("LC_", "PYTHON", "PYSPARK_", "SPARK_")


def keep_what_workers_need(environ: MutableMapping[str, str]) -> None:
    """Remove everything else. Call it when the settings have been read, before the first thread and the first
    child process."""
    for name in list(environ):
        if name not in _NAMES and not name.startswith(_PREFIXES):
            del environ[name]
