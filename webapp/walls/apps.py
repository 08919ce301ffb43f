from django.apps import AppConfig


class WallsConfig(AppConfig):
    name = "webapp.walls"
    label = "walls"
