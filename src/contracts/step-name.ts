/** Value of `uses` for steps whose function is part of the workflow's code. */
export const CODE_STEP = 'code';

/**
 * Matches step names, which occur in `<job>.<step>` ids and in URLs. `:` and `@` are reserved for numbers that the
 * platform appends.
 */
const STEP_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;
export const isStepName = (name: unknown): name is string => typeof name === 'string' && STEP_NAME.test(name);
