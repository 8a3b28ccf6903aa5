/**
 * Handlers that every runner has of its own: they tell what a plugin is made of. No file of a plugin can
 * have their names, since a manifest that names one is refused for want of the file.
 */
export const DESCRIBE_HANDLERS = {
  manifest: 'svc:describe#manifest',
  schemas: 'svc:describe#schemas',
  references: 'svc:describe#references',
  handlers: 'svc:describe#handlers',
  config: 'svc:describe#config',
  input: 'svc:describe#input',
} as const;

/** A zod schema of the plugin, as what is given to it (`input`) or what comes out of it (`output`). */
export interface SchemaToDescribe {
  zod: string;
  io: 'input' | 'output';
}

export type DescribedSchema =
  | { schema: Record<string, unknown>; fault?: undefined }
  | { schema?: undefined; fault: string };

/** One handler of a plugin: what it was made for, and the schemas it brings along itself. */
export type DescribedHandler =
  | {
      kind: string | null;
      method: string | null;
      input: Record<string, unknown> | null;
      output: Record<string, unknown> | null;
      fault?: undefined;
    }
  | { fault: string };

/** An input, or the payload of a signal, and the handler whose own schema is to be held against it. */
export interface InputToCheck {
  ref: string;
  input: unknown;
  /** The name of the signal. */
  signal?: string | undefined;
}

export interface CheckedInput {
  /** What that schema finds wrong; null for a handler without one. */
  issues: Array<{ path: Array<string | number>; message: string }> | null;
  /** The signals that the handler has schemas for: no others need be asked about. */
  signals: string[];
}
