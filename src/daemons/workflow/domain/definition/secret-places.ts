import { SECRET_NAME } from '../../../../contracts/secret-name.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { StepKind } from '../steps/step-kind.ts';
import { addIssue, type DefinitionIssue, formatPath, type Path } from './templates.ts';

/** Place of a secret in the `with` object of a step. */
export interface SecretPlace {
  name: string;
  /** Path within `with`. */
  path: Path;
}

/** Matches a text that consists of a reference to a secret only. It is no expression and is never evaluated. */
const WHOLE = new RegExp(`^\\s*\\$\\{\\{\\s*secrets\\.(${SECRET_NAME})\\s*\\}\\}\\s*$`);
/** Text that records show instead of a secret. */
export const shownSecret = (name: string): string => `[secret ${name}]`;

/**
 * Takes the secrets out of a `with` object, so that expressions are compiled without them. Adds issues for secrets that
 * the definition does not list, and for kinds of steps that would store them.
 */
export function takeSecrets(
  value: Record<string, JsonValue>,
  { allowed, kind, at }: { allowed: readonly string[]; kind: StepKind | undefined; at: Path },
  issues: DefinitionIssue[],
): { shown: Record<string, JsonValue>; secrets: SecretPlace[] } {
  const secrets: SecretPlace[] = [];
  const take = (item: JsonValue, path: Path): JsonValue => {
    if (typeof item === 'string') {
      const name = WHOLE.exec(item)?.[1];
      if (name === undefined) return item;
      const problem = problemOf(name, allowed, kind);
      if (problem) addIssue(issues, { path: [...at, ...path], message: problem });
      secrets.push({ name, path });
      return shownSecret(name);
    }
    if (typeof item !== 'object' || item === null) return item;
    if (Array.isArray(item)) return item.map((child, index) => take(child, [...path, index]));
    return Object.fromEntries(Object.entries(item).map(([key, child]) => [key, take(child, [...path, key])]));
  };
  const shown = take(value, []) as Record<string, JsonValue>;
  return secrets.length === 0 ? { shown: value, secrets } : { shown, secrets };
}

function problemOf(name: string, allowed: readonly string[], kind: StepKind | undefined): string | undefined {
  if (!allowed.includes(name))
    return `the secret ${name} is not listed: add permissions: {"secrets": ["${name}"]} to the definition`;
  if (kind && kind.takesSecrets !== true)
    return `a step of the kind "${kind.name}" would store the secret; only http, scripts, commands and jobs of plugins take secrets`;
  return undefined;
}

/** Returns the input of a step with the values of its secrets. */
export function withSecrets(
  input: Record<string, JsonValue>,
  secrets: readonly SecretPlace[],
  values: ReadonlyMap<string, string>,
): Record<string, JsonValue> {
  return secrets.reduce<JsonValue>(
    (filled, { name, path }) => put(filled, path, values.get(name)!, path),
    input,
  ) as Record<string, JsonValue>;
}

function put(item: JsonValue, path: Path, value: string, whole: Path): JsonValue {
  const [first, ...rest] = path;
  if (first === undefined) return value;
  if (typeof item !== 'object' || item === null)
    throw new Error(`The input has no place with.${formatPath(whole)} for a secret.`);
  if (Array.isArray(item))
    return item.map((child, index) => (index === first ? put(child, rest, value, whole) : child));
  return Object.fromEntries(
    Object.entries(item).map(([key, child]) => [key, key === first ? put(child, rest, value, whole) : child]),
  );
}
