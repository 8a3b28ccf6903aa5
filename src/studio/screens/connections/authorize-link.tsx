import { Command } from '../../ui/command.tsx';
import { Section } from '../../ui/section.tsx';
import { Time } from '../../ui/time.tsx';

interface AuthorizeLinkProps {
  link: { name: string; authorizeUrl: string; authorizeUrlExpiresAt: number };
  /** Whether the authorization has succeeded. */
  isDone: boolean;
}

/** Link with which a person authorizes a connection at its provider. */
export function AuthorizeLink({
  link: { name, authorizeUrl, authorizeUrlExpiresAt },
  isDone,
}: AuthorizeLinkProps) {
  if (isDone)
    return (
      <p class="notice" role="status">
        {name} is authorized.
      </p>
    );
  return (
    <Section title={`Authorize ${name}`}>
      <p>
        The owner of the account opens this link and agrees. It can be completed once, until{' '}
        <Time ms={authorizeUrlExpiresAt} />. This page shows the result.
      </p>
      <p class="actions">
        <a class="button" href={authorizeUrl} target="_blank" rel="noreferrer">
          Open the provider
        </a>
        <Command text={authorizeUrl} />
      </p>
    </Section>
  );
}
