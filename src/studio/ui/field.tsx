import type { ComponentChildren } from 'preact';
import type { FieldIssue } from './form-values.ts';

interface FieldProps {
  id: string;
  label: string;
  value: string;
  onInput: (value: string) => void;
  hint?: ComponentChildren;
  issue?: string | undefined;
  isOptional?: boolean;
  isRequired?: boolean;
  type?: 'text' | 'url' | 'password' | 'number' | 'datetime-local' | 'email';
  placeholder?: string;
  /** Id of a list of suggestions. */
  list?: string;
  maxLength?: number;
  min?: number;
}

/** Text field of a form, with its label, its explanation and its mistake. */
export function Field(props: FieldProps) {
  const { id, label, value, onInput, hint, issue, isOptional, isRequired, type = 'text' } = props;
  const notes = [hint && `${id}-hint`, issue && `${id}-issue`].filter(Boolean).join(' ');
  const { list, placeholder, maxLength, min } = props;
  return (
    <div class="field">
      <label for={id}>
        {label}
        {isOptional && <span class="optional"> (optional)</span>}
      </label>
      <input
        {...({ type, list, placeholder, maxLength, min } as object)}
        id={id}
        value={value}
        required={isRequired}
        autocomplete="off"
        spellcheck={false}
        aria-describedby={notes || undefined}
        aria-invalid={issue ? true : undefined}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <Notes {...{ id, hint, issue }} />
    </div>
  );
}

/** Explanation and mistake of a field. */
export function Notes({
  id,
  hint,
  issue,
}: {
  id: string;
  hint?: ComponentChildren;
  issue?: string | undefined;
}) {
  return (
    <>
      {hint && (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {issue && (
        <span class="error" role="alert" id={`${id}-issue`}>
          {issue}
        </span>
      )}
    </>
  );
}

interface SelectProps {
  id: string;
  label: string;
  value: string;
  options: ReadonlyArray<readonly [value: string, text: string]>;
  onInput: (value: string) => void;
}

/** Choice of a form. */
export function Select({ id, label, value, options, onInput }: SelectProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onInput(event.currentTarget.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

interface CheckProps {
  id: string;
  label: string;
  isChecked: boolean;
  onChange: (isChecked: boolean) => void;
  hint?: string;
}

/** Check mark of a form. */
export function CheckField({ id, label, isChecked, onChange, hint }: CheckProps) {
  return (
    <div class="field check">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="checkbox"
        checked={isChecked}
        aria-describedby={hint && `${id}-hint`}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <Notes {...{ id, hint }} />
    </div>
  );
}

/** Mistake of a form that belongs to none of its fields. */
export function FormIssue({ issues }: { issues: readonly FieldIssue[] }) {
  const issue = issueOf(issues, '');
  return issue ? (
    <p class="error" role="alert">
      {issue}
    </p>
  ) : null;
}

/** Returns the mistake of the field of a request body. */
export function issueOf(issues: readonly FieldIssue[], name: string): string | undefined {
  return issues.find((issue) => issue.name === name)?.message;
}
