"""The gateway's two sides: HTTP routes, and the bus behind them."""
