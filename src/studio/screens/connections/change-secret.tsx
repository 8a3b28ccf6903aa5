import { call } from '../../api/call.ts';
import { Field, issueOf } from '../../ui/field.tsx';
import { Section } from '../../ui/section.tsx';
import type { Action } from '../../ui/use-action.ts';
import { useForm } from '../../ui/use-form.ts';

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
  const { values, issues, set } = form;
  return (
    <Section title="Client secret">
      <form class="schema-form" onSubmit={form.onSubmit}>
        <Field
          id="new-client-secret"
          label="New client secret"
          type="password"
          value={values.secret}
          onInput={(secret) => set({ secret })}
          issue={issueOf(issues, 'clientSecret')}
          isRequired
          hint="The tokens stay. Change it at the provider first, if the provider accepts both for a while."
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
