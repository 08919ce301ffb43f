from django.apps import AppConfig


class HandoversConfig(AppConfig):
    name = "webapp.handovers"
    label = "handovers"
