"""Handovers: their next steps, the effects of these, and the handovers that control orders by itself."""
