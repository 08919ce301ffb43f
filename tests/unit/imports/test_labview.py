"""The measurements of LabVIEW (`.lvm`): two headers, which look like a table, stand above the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.imports.kinds import imported

HEADERS = """LabVIEW Measurement;
Writer_Version;2
Separator;Tab
X_Columns;One
Time_Pref;Relative
Date;2024/05/01
Time;10:20:30.5
***End_of_Header***;
;
Channels;2;;
Samples;30;30;
Date;2024/05/01;2024/05/01;
Time;10:20:30.5;10:20:30.5;
Y_Unit_Label;Volts;Volts;
X0;0.0000000000000000E+0;0.0000000000000000E+0;
Delta_X;0.100000;0.100000;
***End_of_Header***;;;
"""
NAMES = "X_Value;Voltage_0;Voltage_1;Comment\n"


@pytest.mark.parametrize("delimiter", ["\t", ";"])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_table_begins_behind_both_headers(tmp_path: Path, delimiter: str, decimal: str, end: str) -> None:
    rows = "".join(f"{n / 8:.6f};{n / 4:.6f};{n + 0.5:.6f};\n".replace(".", decimal) for n in range(30))
    text = (HEADERS + NAMES + rows).replace(";", delimiter).replace("\n", end)
    found = imported(tmp_path / "m.lvm", text)
    assert found.names == ["X_Value", "Voltage_0", "Voltage_1", "Comment"]
    assert found.column("X_Value") == [n / 8 for n in range(30)]
    assert found.column("Voltage_1") == [n + 0.5 for n in range(30)]
    assert [column.unit for column in found.reading.columns] == [None, "Volts", "Volts", None]
    assert found.times[:2] == ["2024-05-01T10:20:30.500000+00:00", "2024-05-01T10:20:30.625000+00:00"]
    assert "0.000000 is 2024-05-01 10:20:30" in found.notes.replace(",", ".")


def test_a_measurement_without_names_and_without_seconds(tmp_path: Path) -> None:
    rows = "".join(f"{n / 4:.6f}\t{n + 0.5:.6f}\n" for n in range(30))
    found = imported(tmp_path / "m.lvm", HEADERS.replace(";", "\t") + rows)
    assert [found.column(name)[7] for name in found.names[:2]] == [1.75, 7.5]
    assert found.report.rows == 30
    rows = "".join(f"\t{n / 4:.6f}\t{n + 0.5:.6f}\t\n" for n in range(30))
    found = imported(tmp_path / "m.lvm", (HEADERS + NAMES).replace(";", "\t") + rows)
    assert (found.report.rows, found.column("Voltage_0")[7]) == (30, 1.75)
