/** Other words, in English and German, by which people look for something. Pure. */

/** Words of one line mean the same to somebody who searches. The first ones are those of this dashboard. */
const MEANINGS = `
average, mean, aggregate, avg, Mittelwert, Durchschnitt, Mittel, Schnitt
sum, total, count, Summe, Anzahl, zählen, addieren
minimum, maximum, min, max, highest, lowest, Höchstwert, Tiefstwert
window, minute, hour, interval, period, per minute, Fenster, Zeitfenster, Stunde, Zeitraum, pro Minute
alert, alarm, notify, notification, warn, limit, threshold, benachrichtigen, melden, Meldung, Warnung, Grenzwert, Schwelle
filter, condition, where, filtern, Bedingung, auswählen
derive, computed, calculate, formula, expression, convert, unit, berechnen, rechnen, Formel, umrechnen, Einheit
select, rename, choose, Spalten, umbenennen
join, pairs, combine, match, lookup, verbinden, verknüpfen, zusammenführen
merge, brings, union, append, vereinigen
deduplicate, duplicates, distinct, repeated, doppelt, Duplikate
difference, change, delta, derivative, Differenz, Änderung, Ableitung
trend, slope, regression, Steigung, Verlauf
peak, peaks, spike, pulse, Spitze, Ausschlag
edge, signal, rises, falls, Flanke
frequency, noise, smooth, low-pass, Frequenz, Rauschen, glätten, Tiefpass
statistics, deviation, variance, Statistik, Abweichung, Streuung
model, trained, machine learning, ai, onnx, predict, Modell, Vorhersage, KI
record, recorder, aufzeichnen, Aufnahme, mitschneiden
baseline, earlier values, reference, Grundlast, Vergleich
last values, previous, lag, history, letzte Werte, vorherige
time between, events, duration, missing, Dauer, Abstand, Ereignisse
chart, curve, plot, graph, diagram, Diagramm, Kurve, Verlauf, anzeigen
table, list, Tabelle, Liste
csv, file, excel, upload, import, replay, Datei, hochladen, abspielen
kafka, topic, queue, broker, mqtt, message, Nachrichten, Warteschlange
generator, test data, example, sample, simulate, Testdaten, Beispiel, erzeugen
pipeline, flow, job, Ablauf, Datenfluss
new, add, create, neu, anlegen, hinzufügen, erstellen
template, gallery, example, sample, Vorlage, Muster, Beispiel
node, machine, server, computer, Knoten, Rechner, Maschine
overview, home, dashboard, start, Übersicht, Startseite
map, sites, latency, network, Karte, Standorte, Netz
alarm, alarms, alert, notify, message, on call, acknowledge, silence, Alarm, Alarme, Meldung, benachrichtigen, quittieren, Bereitschaft
policy, policies, rule, automatic, Regel, Regeln, automatisch
events, audit, history, log, who, Ereignisse, Protokoll, Verlauf, wer
account, accounts, user, users, password, role, token, profile, Konto, Konten, Benutzer, Nutzer, Passwort, Kennwort, Rolle
theme, dark, light, mode, colours, dunkel, hell, Farben
deploy, run, start, go live, ausführen, starten, ausrollen
undeploy, stop, end, beenden, anhalten, stoppen
migrate, move, handover, relocate, verschieben, umziehen
restore, recover, rewind, wiederherstellen, zurücksetzen
pause, hold, freeze, pausieren
resume, continue, go on, fortsetzen, weiter
checkpoint, backup, save, snapshot, sichern, Sicherung
standby, spare, replica, Reserve, Ersatz
undo, back, rückgängig
redo, again, wiederholen
delete, remove, löschen, entfernen
duplicate, copy, kopieren, verdoppeln
export, download, yaml, exportieren, herunterladen
search, find, suchen, finden
zoom, fit, show all, vergrößern, verkleinern, einpassen
arrange, layout, align, tidy, anordnen, ausrichten
versions, history, compare, restore, Versionen, vergleichen
drain, cordon, empty, maintenance, leeren, sperren, Wartung
`
  .trim()
  .split("\n")
  .map((line) => line.split(", ").map((word) => word.toLowerCase()));

/** Whether the text has the word, or its plural. */
const says = (text: string, word: string): boolean =>
  new RegExp(`(^|[^\\p{L}])${word}s?($|[^\\p{L}])`, "u").test(text);

const known = new Map<string, string[]>();

/** The words that mean the same as some word of the text. */
export function synonymsOf(text: string): string[] {
  const found = known.get(text);
  if (found) return found;
  const lower = text.toLowerCase();
  const words = MEANINGS.filter((same) => same.some((word) => says(lower, word))).flat();
  const unique = [...new Set(words)];
  known.set(text, unique);
  return unique;
}

/**
 * How well something is what somebody looks for, from 0 (not at all) to 1. Each of the words has to be in its
 * title, in the other words that it is known by, or in what means the same.
 */
export function matchScore(title: string, known: readonly string[], search: string): number {
  const wanted = search.toLowerCase().trim();
  if (wanted === "") return 1;
  const name = title.toLowerCase();
  if (name.startsWith(wanted)) return 1 - Math.min(0.1, (name.length - wanted.length) / 1000);
  const words = wanted.split(/\s+/);
  const all = (text: string) => words.every((word) => text.includes(word));
  if (all(name)) return name.split(/[^\p{L}\d]+/u).some((word) => word.startsWith(words[0]!)) ? 0.8 : 0.7;
  const own = [name, ...known].join(" ").toLowerCase();
  if (all(own)) return 0.5;
  const same = synonymsOf(own);
  if (same.includes(wanted)) return 0.4;
  return all(`${own} ${same.join(" ")}`) ? 0.3 : 0;
}
