"""Reasons why `make up` cannot start."""

from __future__ import annotations

from pipeline_runtime.model.error_codes.known_error import KnownError

AT_START = (
    KnownError(
        "settings-refused",
        "A setting cannot be used",
        "An environment variable has a value that is not allowed, or names something that does not exist"
        " or cannot be used.",
        "Nothing was started, and no data was changed.",
        "The message names the variable, and docs/reference/settings.md says which values it may have."
        " Correct the value, and start again.",
    ),
    KnownError(
        "already-running",
        "Fogline runs already on this data",
        "Another Fogline uses the same data directory.",
        "Nothing was started. The Fogline that already runs is not affected.",
        "Use the Fogline that runs, or stop it first. To run a second one, set FOGLINE_DATA to another"
        " directory.",
    ),
    KnownError(
        "port-taken",
        "A port cannot be used",
        "Another program listens on a port that Fogline needs, two parts of Fogline were given the same"
        " port, or your user may not open it.",
        "Nothing was started, and no data was changed.",
        "The message names the port, the variable that changes it, and the program that has it. Stop that"
        " program, or choose another port.",
    ),
    KnownError(
        "disk-full",
        "There is too little room on the disk",
        "The disk with the data directory has less free space than Fogline needs to start.",
        "Nothing was started, and no data was changed.",
        "Free some space, or set FOGLINE_DATA to a directory on another disk.",
    ),
    KnownError(
        "java-missing",
        "There is no Java that fits",
        "Spark and Kafka need Java 17 or newer. This machine has no Java on its path, or an older one.",
        "Nothing was started, and no data was changed.",
        "Install Java 17 or newer, and start again.",
    ),
    KnownError(
        "kafka-away",
        "Kafka does not answer",
        "No Kafka broker answers at the addresses of FOGLINE_KAFKA. Fogline needs Kafka when it starts,"
        " and when it deploys or upgrades a pipeline.",
        "Pipelines that run go on as soon as Kafka answers. Nothing that was committed is lost.",
        "Check whether the brokers run, whether the addresses are right, and whether the security"
        " settings fit. Then try again.",
    ),
)
