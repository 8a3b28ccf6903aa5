/**
 * Built-in runner handlers that return descriptions of a plugin. Their names cannot collide with handlers of the
 * plugin, because a manifest that references a missing file is rejected.
 */
export const DESCRIBE_HANDLERS = {
  manifest: 'svc:describe#manifest',
  schemas: 'svc:describe#schemas',
  references: 'svc:describe#references',
  handlers: 'svc:describe#handlers',
  config: 'svc:describe#config',
  input: 'svc:describe#input',
} as const;

/** Zod schema of a plugin to convert to JSON Schema, either as an input schema or as an output schema. */
export interface SchemaToDescribe {
  zod: string;
  io: 'input' | 'output';
}

export type DescribedSchema =
  | { schema: Record<string, unknown>; fault?: undefined }
  | { schema?: undefined; fault: string };

/** Kind of a handler and the schemas that it declares in code, or the reason why the handler is invalid. */
export type DescribedHandler =
  | {
      kind: string | null;
      method: string | null;
      input: Record<string, unknown> | null;
      output: Record<string, unknown> | null;
      fault?: undefined;
    }
  | { fault: string };

/** Input or signal payload to validate against the schema that the handler declares in code. */
export interface InputToCheck {
  ref: string;
  input: unknown;
  /** Name of the signal. Set only if the value is a signal payload. */
  signal?: string | undefined;
}

export interface CheckedInput {
  /** Validation issues, or null if the handler declares no schema for the value. */
  issues: Array<{ path: Array<string | number>; message: string }> | null;
  /** Names of the signals for which the handler declares a schema. Payloads of other signals are not validated. */
  signals: string[];
}
