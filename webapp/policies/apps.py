from django.apps import AppConfig


class PoliciesConfig(AppConfig):
    name = "webapp.policies"
    label = "policies"
