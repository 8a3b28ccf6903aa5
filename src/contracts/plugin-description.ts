/**
 * Built-in runner handlers that return descriptions of a plugin. Plugin handlers cannot have these names, because every
 * plugin handler must reference an existing file.
 */
export const DESCRIBE_HANDLERS = {
  manifest: 'svc:describe#manifest',
  schemas: 'svc:describe#schemas',
  references: 'svc:describe#references',
  handlers: 'svc:describe#handlers',
  config: 'svc:describe#config',
  input: 'svc:describe#input',
  mcpTools: 'svc:describe#mcpTools',
} as const;

/** Zod schema of a plugin. The schema is converted to JSON Schema, as an input schema or as an output schema. */
export interface SchemaToDescribe {
  zod: string;
  io: 'input' | 'output';
}

export type DescribedSchema =
  | { schema: Record<string, unknown>; fault?: undefined }
  | { schema?: undefined; fault: string };

/** Kind of a handler and its schemas from code, or the reason why the handler is invalid. */
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
