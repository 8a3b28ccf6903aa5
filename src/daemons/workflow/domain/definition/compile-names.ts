import { addIssue, type DefinitionIssue, excerpt, type Template } from './templates.ts';

/**
 * Maximum number of names that a message lists. A job can have 200 steps, and an expression can contain hundreds of
 * wrong names.
 */
const MAX_LISTED = 20;

/**
 * Adds an issue for each field of `variable` that an expression reads but `known` lacks. Misspelt step ids are thus
 * found before a run fails.
 */
export function names<T extends Pick<Template, 'expressions'>>(
  template: T,
  variable: string,
  known: readonly string[],
  issues: DefinitionIssue[],
): T {
  for (const { expression, path, offset: start } of template.expressions)
    for (const { name, offset } of expression.namesOf(variable))
      if (!known.includes(name))
        addIssue(issues, {
          path,
          message: `"${variable}.${excerpt(name)}" is not there at this point${listed(variable, known)}`,
          offset: start + offset,
          isReference: true,
        });
  return template;
}

function listed(variable: string, known: readonly string[]): string {
  if (known.length === 0) return '';
  const names = known.slice(0, MAX_LISTED).map((one) => `${variable}.${one}`);
  const more = known.length > MAX_LISTED ? ` and ${known.length - MAX_LISTED} more` : '';
  return `; there is ${names.join(', ')}${more}`;
}

/** All variables that expressions can contain. */
const VARIABLES = ['input', 'run', 'matrix', 'steps', 'needs', 'jobs', 'delivery'];

/** Adds an issue for each variable that the template uses and that `variables` does not contain. */
export function only<T extends Pick<Template, 'expressions'>>(
  template: T,
  { variables }: { variables: readonly string[] },
  issues: DefinitionIssue[],
): T {
  for (const variable of VARIABLES) if (!variables.includes(variable)) names(template, variable, [], issues);
  return template;
}
