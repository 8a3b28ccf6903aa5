import { call } from '../../api/call.ts';
import { Field } from '../../ui/field.tsx';
import { Section } from '../../ui/section.tsx';
import type { Action } from '../../ui/use-action.ts';
import { textFields, useForm } from '../../ui/use-form.ts';

interface ChangeSecretProps {
  name: string;
  action: Action;
  onDone: () => void;
}

/** Replaces the client secret of a connection. The value is never filled in, and cleared when it is stored. */
export function ChangeSecret({ name, action, onDone }: ChangeSecretProps) {
  const form = useForm({ secret: '' }, action, async ({ secret }) => {
    await call('updateConnection', { params: { name: name as never }, body: { clientSecret: secret } });
    form.reset();
    onDone();
    return 'The client secret is replaced. The next refresh uses it.';
  });
  return (
    <Section title="Client secret">
      <form class="schema-form" onSubmit={form.onSubmit}>
        <Field
          {...textFields(form, 'new-client')('secret', 'clientSecret')}
          label="New client secret"
          type="password"
          isRequired
          hint="Create the new secret at the provider first. The connection keeps its tokens, but they cannot be refreshed while the stored secret is not valid at the provider."
        />
        <div class="actions">
          <button type="submit" disabled={action.isBusy}>
            Replace secret
          </button>
        </div>
      </form>
    </Section>
  );
}
