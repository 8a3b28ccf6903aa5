/** How `uses` names a step whose function the workflow's own code brings along. */
export const CODE_STEP = 'code';

/** Stands in `<job>.<step>` and in URLs; `:` and `@` are for the numbers that the platform adds. */
const STEP_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;
export const isStepName = (name: unknown): name is string => typeof name === 'string' && STEP_NAME.test(name);
