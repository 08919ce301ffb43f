"""Names of the Celery tasks, each with its arguments, and of the queues they wait in.

web --task, queue control--> control --fogline.node.sync, queue node.<name>--> node web --fogline.node.look,
queue node.<name>--> node --RPUSH fogline:answer:<id>--> web
"""

from __future__ import annotations

CONTROL_QUEUE = "control"

OPERATION = "fogline.control.operation"  # (operation_id)
HANDOVER = "fogline.control.handover"  # (handover_id)
CHECKPOINT = "fogline.control.checkpoint"  # (deployment, group)
DESIRED_CHANGED = "fogline.control.desired_changed"  # ()
FILES = "fogline.control.files"  # ()
LETTERS = "fogline.control.letters"  # (deployment, element)
LOOK = "fogline.control.look"  # ()

NODE_SYNC = "fogline.node.sync"  # (NodeDesired as JSON)
NODE_CHECKPOINT = "fogline.node.checkpoint"  # (group id)
NODE_LOOK = "fogline.node.look"  # (KeptQuestion as JSON); from web
NODE_PREVIEW = "fogline.node.preview"  # (PreviewQuestion as JSON); from web
NODE_TEST = "fogline.node.test"  # (connectors.TestQuestion as JSON); from web
NODE_LOG = "fogline.node.log"  # (LogQuestion as JSON); from web

COMMAND_EXPIRES_S = 30
"""How long a command to control may wait, by one machine's clock. A command to a node never expires: a node
whose clock is ahead would drop all of them without a word. It is safe when it comes late, and control empties
the queue of a node that is away."""


def node_queue(node: str) -> str:
    return f"node.{node}"
