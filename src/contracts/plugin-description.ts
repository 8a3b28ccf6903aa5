/**
 * Built-in handlers of every runner that describe a plugin. Their names cannot collide with a plugin's files: a
 * manifest that references a missing file is rejected.
 */
export const DESCRIBE_HANDLERS = {
  manifest: 'svc:describe#manifest',
  schemas: 'svc:describe#schemas',
  references: 'svc:describe#references',
  handlers: 'svc:describe#handlers',
  config: 'svc:describe#config',
  input: 'svc:describe#input',
} as const;

/** A zod schema of the plugin that is converted to JSON Schema, as an input or an output. */
export interface SchemaToDescribe {
  zod: string;
  io: 'input' | 'output';
}

export type DescribedSchema =
  | { schema: Record<string, unknown>; fault?: undefined }
  | { schema?: undefined; fault: string };

/** A handler with its kind and the schemas it declares in code. */
export type DescribedHandler =
  | {
      kind: string | null;
      method: string | null;
      input: Record<string, unknown> | null;
      output: Record<string, unknown> | null;
      fault?: undefined;
    }
  | { fault: string };

/** An input or a signal's payload that the handler's own schema validates. */
export interface InputToCheck {
  ref: string;
  input: unknown;
  /** Name of the signal, if a payload is validated. */
  signal?: string | undefined;
}

export interface CheckedInput {
  /** Issues found by the handler's schema; null if it has none. */
  issues: Array<{ path: Array<string | number>; message: string }> | null;
  /** Signals for which the handler has a schema. Payloads of other signals are not validated. */
  signals: string[];
}
