import { Notes } from './field.tsx';
import { JsonField } from './json-field/json-field.tsx';

interface JsonRowProps {
  id: string;
  label: string;
  value: string;
  onInput: (value: string) => void;
  hint?: string | undefined;
  issue?: string | undefined;
  isOptional?: boolean;
  rows?: number;
}

/** Field of a form for a JSON text, with its explanation and its mistake. */
export function JsonRow({ id, label, value, onInput, hint, issue, isOptional, rows }: JsonRowProps) {
  return (
    <div class="field">
      <JsonField
        {...{ id, hint, issue }}
        label={isOptional ? `${label} (optional)` : label}
        text={value}
        onChange={onInput}
        isOptional={isOptional ?? false}
        rows={rows ?? 3}
      />
      <Notes {...{ id, hint, issue }} />
    </div>
  );
}
