"""Trades through the client that openapi-python-client makes of the published document: `trade.py URL`."""

import sys
from http import HTTPStatus

from pares_exchange import AuthenticatedClient, Client
from pares_exchange.api.market import instruments
from pares_exchange.api.orders import (
    amend_order_by_name,
    cancel_order_by_name,
    enter_order,
    fills,
    order_by_name,
    positions,
)
from pares_exchange.api.session import sign_on
from pares_exchange.models import OrderForm, Problem, SignOnForm, TermsForm


def signed_on(url, member):
    session = sign_on.sync(client=Client(base_url=url), body=SignOnForm(member=member))
    return AuthenticatedClient(base_url=url, token=session.token)


def order(name, symbol, side, price, quantity):
    return OrderForm(client_order_id=name, symbol=symbol, side=side, price=price, quantity=quantity)


url = sys.argv[1]
seller, buyer = signed_on(url, 17), signed_on(url, 18)
listed = instruments.sync(client=seller).instruments[0]
symbol = listed.symbol

entered = enter_order.sync_detailed(client=seller, body=order("1", symbol, "sell", "20", "100"))
assert entered.status_code == HTTPStatus.CREATED, entered
assert (entered.parsed.status, entered.parsed.remaining) == ("resting", "100"), entered.parsed
amended = amend_order_by_name.sync("1", client=seller, body=TermsForm(client_order_id="2", price="21", quantity="90"))
assert amended.remaining == "90", amended
filled = enter_order.sync(client=buyer, body=order("1", symbol, "buy", "21", "40"))
assert filled.status == "filled", filled
read = order_by_name.sync("1", client=seller)
assert (read.state, read.executed, read.remaining) == ("working", "40", "50"), read
cancelled = cancel_order_by_name.sync("1", client=seller, client_order_id="3")
assert cancelled.status == "cancelled", cancelled

page = fills.sync(client=seller, shard=listed.shard)
assert [(fill.price, fill.quantity) for fill in page.fills] == [("21", "40")], page
held = [held for held in positions.sync(client=seller).positions if held.symbol == symbol]
assert [one.net for one in held] == ["-40"], held
refused = enter_order.sync_detailed(client=seller, body=order("4", symbol, "sell", "20", "0"))
assert refused.status_code == HTTPStatus.UNPROCESSABLE_ENTITY, refused
assert isinstance(refused.parsed, Problem) and refused.parsed.reason == "zero_quantity", refused.parsed
print("traded")
