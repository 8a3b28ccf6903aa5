import type { DefinitionIssue, Template } from './templates.ts';

/** Every name an expression takes of `variable` must be one of `known`: a misspelt step would be noticed only when it is too late. */
export function names<T extends Pick<Template, 'expressions'>>(
  template: T,
  variable: string,
  known: readonly string[],
  issues: DefinitionIssue[],
): T {
  for (const { expression, path, offset: start } of template.expressions)
    for (const { name, offset } of expression.namesOf(variable))
      if (!known.includes(name))
        issues.push({
          path,
          message: `"${variable}.${name}" is not there at this point${known.length > 0 ? `; there is ${known.map((one) => `${variable}.${one}`).join(', ')}` : ''}`,
          offset: start + offset,
          isReference: true,
        });
  return template;
}

/** Every variable of which an expression takes names. */
const VARIABLES = ['input', 'run', 'matrix', 'steps', 'needs', 'jobs', 'delivery'];

/** Allows no names of other variables than these. */
export function only<T extends Pick<Template, 'expressions'>>(
  template: T,
  { variables }: { variables: readonly string[] },
  issues: DefinitionIssue[],
): T {
  for (const variable of VARIABLES) if (!variables.includes(variable)) names(template, variable, [], issues);
  return template;
}
