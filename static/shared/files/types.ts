/** Types of data files: as the REST API sends them, where nothing is left out. */
import type * as api from "../api.gen";

/** With each field, for the server sends them all; only a request may leave out what has a default. */
type Whole<T> = T extends object ? { [K in keyof T]-?: Whole<Exclude<T[K], undefined>> } : T;

export type FieldType = api.FieldType;
export type Source = api.ColumnReading["source"];
export type ColumnReading = Whole<api.ColumnReading>;
export type TimeReading = Whole<api.TimeReading>;
export type Reading = Whole<api.Reading>;
export type Question = Whole<api.Question>;
export type Report = Whole<api.Report>;
export type Jump = Whole<api.Jump>;
export type FileState = api.StoredFile["state"];
export type FileUse = api.FileUse;
export type StoredFile = Whole<api.StoredFile>;
export type FileDetail = Omit<Whole<api.FileDetail>, "detection"> & { detection: Detection | null };
/** `members`, `sheets`, `arrays`: what of an archive, a workbook or a JSON document can be read */
export type Detection = Omit<Whole<api.Detection>, "members" | "sheets" | "arrays"> & {
  members?: string[];
  sheets?: string[];
  arrays?: string[];
};

export type PreviewLine = Whole<api.PreviewLine>;
export type PreviewColumn = Whole<api.PreviewColumn>;
export type PreviewRow = Whole<api.PreviewRow>;
export type Preview = Whole<api.Preview>;
export type Previewed = Whole<Pick<api.FilePreview, "preview" | "encodings">> & {
  detection: Detection | null;
};
