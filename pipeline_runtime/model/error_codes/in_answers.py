"""Errors that are in an answer of the REST API, and in the dashboard's messages."""

from __future__ import annotations

from pipeline_runtime.model.error_codes.known_error import UNCHANGED, KnownError

IN_ANSWERS = (
    KnownError(
        "unreadable",
        "The request cannot be read",
        "The body of the request is not the JSON, form or file that this route expects.",
        UNCHANGED,
        "Correct the body. `/api/v1/openapi.json` describes what each route accepts.",
    ),
    KnownError(
        "unauthenticated",
        "You are not signed in",
        "The request has neither a session nor a valid API token. A new password ends all tokens of its"
        " account.",
        UNCHANGED,
        "Sign in, or send `Authorization: Bearer <token>` with a token from *Your account*.",
    ),
    KnownError(
        "forbidden",
        "Your role may not do this",
        "You are signed in, but this action needs a higher role.",
        UNCHANGED,
        "Ask an admin to give you that role, or ask somebody who has it to do this.",
    ),
    KnownError(
        "csrf",
        "The page is too old to change something",
        "A browser must send the token that Fogline gave to the page. You opened the page before you last"
        " signed in, or another site has sent the request.",
        UNCHANGED,
        "Reload the page and try again. In a program, send an API token instead of a session.",
    ),
    KnownError(
        "not-found",
        "There is nothing of that name",
        "The pipeline, element, node or other thing that the request names does not exist, or no longer"
        " exists.",
        UNCHANGED,
        "Check the name. The overview lists what there is.",
    ),
    KnownError(
        "method-not-allowed",
        "This address does not accept that method",
        "The address exists, but not with this method. For example, the request has POST where only GET"
        " is possible.",
        UNCHANGED,
        "The answer's header Allow lists the methods that the address accepts.",
    ),
    KnownError(
        "conflict",
        "This is not possible now",
        "The request is valid, but the thing that it names is in a state that does not allow it. For"
        " example, it runs, does not run or moves, or its name is taken.",
        UNCHANGED,
        "`next` in the answer says what to do first.",
    ),
    KnownError(
        "draft-overtaken",
        "Somebody else saved the draft meanwhile",
        "You opened the draft. Then somebody else saved it, before you saved or deployed yours.",
        "Both drafts are kept: the saved one is unchanged, and yours is in the answer or in your browser.",
        "Look at both, merge them, and save or deploy again. The editor offers that.",
    ),
    KnownError(
        "wall-overtaken",
        "Somebody else saved the wall meanwhile",
        "You opened the wall. Then somebody else saved it, before you saved yours.",
        "The saved wall is unchanged, and is in the answer. Yours is in your browser.",
        "Load the saved wall, make your change again, and save.",
    ),
    KnownError(
        "upgrade-refused",
        "This version cannot take over from the one that runs",
        "The version has a change that Fogline cannot make while the pipeline runs. `faults` names each"
        " element and the reason.",
        UNCHANGED,
        "Undo the changes that `faults` names, or undeploy the pipeline first."
        " docs/explanation/operations.md says what an upgrade may change.",
    ),
    KnownError(
        "version-differs",
        "The machine has another version of Fogline",
        "Each node must have the same version of Fogline as the dashboard that it joins.",
        "The machine has not joined. Its token can still be used.",
        "Install on this machine the version that the message names, and start the node again.",
    ),
    KnownError(
        "length-required",
        "The request does not say how long it is",
        "An upload needs the header `Content-Length`.",
        "Nothing was stored.",
        "Send the length. With curl, `--data-binary @file` does so.",
    ),
    KnownError(
        "too-large",
        "The file or request is too large",
        "The file or the request is larger than the limit that the message names.",
        "Nothing was stored.",
        "Split the file or the request. For data files, an admin can raise `FOGLINE_UPLOAD_BYTES_MAX`.",
    ),
    KnownError(
        "invalid",
        "The content has mistakes",
        "Fogline can read the request, but values in it are missing or not allowed. `faults` names each"
        " place.",
        UNCHANGED,
        "Correct what `faults` names, and send the request again.",
    ),
    KnownError(
        "precondition-required",
        "The request does not say which draft it changes",
        "A request that saves a draft needs the header `If-Match` with the draft's revision, so that"
        " nobody's work is overwritten.",
        UNCHANGED,
        "Read the draft, and send its `ETag` as `If-Match`.",
    ),
    KnownError(
        "too-soon",
        "The same was done a moment ago",
        "Fogline allows this request only once within some seconds. The answer's header `Retry-After`"
        " says how many seconds to wait.",
        UNCHANGED,
        "Wait for that time, and send the request again.",
    ),
    KnownError(
        "backend-away",
        "Kafka, Redis, a checkpoint service or a node does not answer",
        "Your request needs one of these, and the dashboard got no answer from it.",
        "Running pipelines are not affected by this request. An order that could not be sent was not"
        " carried out.",
        "Check whether the service or node that the message names runs, then try again. `/readyz` says"
        " which services answer.",
    ),
    KnownError(
        "server-failed",
        "The dashboard itself failed",
        "The dashboard met an error for which it has no message.",
        "Running pipelines are not affected: no pipeline needs the dashboard.",
        "The log `web.log` in `FOGLINE_DATA/logs` has the details. Please report the error.",
    ),
)
