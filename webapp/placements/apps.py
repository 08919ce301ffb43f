from django.apps import AppConfig


class PlacementsConfig(AppConfig):
    name = "webapp.placements"
    label = "placements"
