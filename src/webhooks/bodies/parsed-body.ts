/** A file of a `multipart/form-data` body. */
export interface UploadedFile {
  /** Name of the form field. */
  field: string;
  filename: string;
  contentType: string;
  data: Buffer;
}

/** A request body that could be parsed. */
export interface ParsedPayload {
  value: unknown;
  /** The value as JSON text, kept so that the value does not have to be serialized again. */
  text: string;
  /** Files of the body, in the order of their parts. The value refers to them by their object keys. */
  files?: readonly UploadedFile[];
}

/** A parsed body, or the reason why the body is not in its format. */
export type ParsedBody =
  | (ParsedPayload & { fault?: undefined })
  | { value?: undefined; text?: undefined; files?: undefined; fault: string };

/** Maximum number of fields in a form. */
export const MAX_FIELDS = 1000;
/** Maximum length of a field's name, in UTF-8 bytes. */
export const MAX_FIELD_NAME_BYTES = 1024;

/** A reason why a body is not in its format. Thrown within parsers, which return it as a fault. */
export class BodyFault extends Error {}

/** Runs a parser and returns its fault, if any. Other errors are thrown. */
export function faultsOf(parse: () => ParsedPayload): ParsedBody {
  try {
    return parse();
  } catch (error) {
    if (error instanceof BodyFault) return { fault: error.message };
    throw error;
  }
}

/** Returns the payload of a value that has no JSON text yet. */
export function payloadFrom(value: unknown, files?: readonly UploadedFile[]): ParsedPayload {
  return { value, text: JSON.stringify(value), ...(files && files.length > 0 ? { files } : {}) };
}

/**
 * Fields by name. Has no prototype, so that a field named `__proto__` is an ordinary one. Values of a repeated field
 * become an array.
 */
export class FieldMap<Value> {
  readonly values: Record<string, Value | Value[]> = Object.create(null);
  #count = 0;

  /** Throws BodyFault for too many fields, or a name that is too long. */
  add(name: string, value: Value): void {
    if (++this.#count > MAX_FIELDS) throw new BodyFault(`it has more than ${MAX_FIELDS} fields`);
    if (Buffer.byteLength(name) > MAX_FIELD_NAME_BYTES)
      throw new BodyFault(`the name of a field is longer than ${MAX_FIELD_NAME_BYTES} bytes`);
    const before = this.values[name];
    if (before === undefined) this.values[name] = value;
    else if (Array.isArray(before)) before.push(value);
    else this.values[name] = [before, value];
  }
}
