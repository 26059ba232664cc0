"""Who trains together: ranks, what they exchange, and which of all rows are whose."""

from ranktrees.processes.communicator import Communicator, RankError, active, active_driver
from ranktrees.processes.sockets import SocketCommunicator

__all__ = ["Communicator", "RankError", "SocketCommunicator", "active", "active_driver"]
