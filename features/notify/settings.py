"""The setting of notifications: where `notify.toml` is."""

from __future__ import annotations

from plansurvive.runtime.feature_settings import FeatureSettings, NamedFile


class NotifySettings(FeatureSettings):
    """Settings of notifications."""

    feature = "notify"

    notify: NamedFile | None = None
    """File with the targets of notifications (docs/notifications.md), and who is notified of all plans; default:
    `notify.toml` in the state directory, if there is one."""


SETTINGS = NotifySettings
