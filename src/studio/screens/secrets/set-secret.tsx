import { useState } from 'preact/hooks';
import { call } from '../../api/call.ts';
import { CheckField, Field, Notes } from '../../ui/field.tsx';
import { Section } from '../../ui/section.tsx';
import type { Action } from '../../ui/use-action.ts';
import { useFocusNew } from '../../ui/use-focus-new.ts';
import { textFields, useForm } from '../../ui/use-form.ts';

interface SetSecretProps {
  /** Secret that gets a new version; empty for a new secret. */
  name: string;
  action: Action;
  onDone: () => void;
}

/** Sets a secret. The value is never filled in, and cleared when it is stored. */
export function SetSecret({ name, action, onDone }: SetSecretProps) {
  const [isLong, setLong] = useState(false);
  const form = useForm({ name, value: '', expires: '' }, action, async (values) => {
    const expiresAt = values.expires === '' ? null : new Date(values.expires).getTime();
    const params = { name: values.name.trim() };
    const { version } = await call('setSecret', { params, body: { value: values.value, expiresAt } });
    form.reset();
    onDone();
    return `${params.name} is set (version ${version}).`;
  });
  const text = textFields(form, 'secret');
  useFocusNew('secret', 'secret-name');
  const value = text('value');
  return (
    <Section title={name === '' ? 'Set a secret' : `New version of ${name}`}>
      <form class="schema-form" onSubmit={form.onSubmit}>
        {name === '' && (
          <Field
            {...text('name', '')}
            label="Name"
            isRequired
            placeholder="SHOP_KEY"
            hint="Capital letters, digits and _."
          />
        )}
        {isLong ? (
          <div class="field">
            <label for={value.id}>Value</label>
            <textarea
              id={value.id}
              class="hidden-text"
              rows={6}
              required
              autocomplete="off"
              spellcheck={false}
              value={value.value}
              onInput={(event) => value.onInput(event.currentTarget.value)}
            />
            <Notes id={value.id} issue={value.issue} />
          </div>
        ) : (
          <Field {...value} label="Value" type="password" isRequired />
        )}
        <CheckField
          id="secret-lines"
          label="Several lines, such as a key in PEM"
          isChecked={isLong}
          onChange={setLong}
        />
        <Field
          {...text('expires', 'expiresAt')}
          label="Stops working at"
          type="datetime-local"
          isOptional
          hint="When its service stops accepting it. A rule can alert before that."
        />
        <div class="actions">
          <button type="submit" class="primary" disabled={action.isBusy}>
            Set secret
          </button>
        </div>
      </form>
    </Section>
  );
}
