from django.apps import AppConfig


class AlarmsConfig(AppConfig):
    name = "webapp.alarms"
    label = "alarms"
