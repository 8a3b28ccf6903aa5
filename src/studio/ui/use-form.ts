import { useState } from 'preact/hooks';
import type { ApiError } from '../api/call.ts';
import { issueOf } from './field.tsx';
import { type FieldIssue, issuesOf } from './form-values.ts';
import type { Action } from './use-action.ts';

export interface Form<Values> {
  values: Values;
  issues: readonly FieldIssue[];
  set(changed: Partial<Values>): void;
  reset(): void;
  /** Handler of `submit`: runs the action and keeps the mistakes that the gateway finds in the body. */
  onSubmit(event: SubmitEvent): void;
}

/** State of a form whose fields form the body of a call. */
export function useForm<Values extends object>(
  first: Values,
  action: Action,
  send: (values: Values) => Promise<string>,
): Form<Values> {
  const [values, setValues] = useState(first);
  const [issues, setIssues] = useState<readonly FieldIssue[]>([]);
  return {
    values,
    issues,
    set: (changed) => setValues((before) => ({ ...before, ...changed })),
    reset: () => setValues(first),
    onSubmit(event) {
      event.preventDefault();
      // A form is also sent with Enter.
      if (action.isBusy) return;
      setIssues([]);
      action.run(() =>
        send(values).catch((error: ApiError) => {
          setIssues(issuesOf(error.details ?? {}, 'body'));
          throw error;
        }),
      );
    },
  };
}

type TextName<Values> = {
  [Name in keyof Values]: Values[Name] extends string ? Name : never;
}[keyof Values] &
  string;

/**
 * Returns a function that returns the properties of the field of a text. `part` is the field of the body whose mistakes
 * are shown, if it has another name.
 */
export function textFields<Values extends object>({ values, issues, set }: Form<Values>, id: string) {
  return (name: TextName<Values>, part: string = name) => ({
    id: `${id}-${name}`,
    value: values[name] as string,
    onInput: (value: string) => set({ [name]: value } as unknown as Partial<Values>),
    issue: issueOf(issues, part),
  });
}
