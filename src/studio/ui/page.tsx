import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { Command } from './command.tsx';

interface PageProps {
  title: string;
  /** Command that shows the same in a terminal. */
  command?: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
}

/** A screen: its heading, its actions, its content, and the command that does the same. */
export function Page({ title, command, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · svc studio`;
  }, [title]);
  return (
    <div class="page">
      <div class="heading">
        <h1>{title}</h1>
        {actions && <div class="actions">{actions}</div>}
      </div>
      {children}
      {command && (
        <footer class="same">
          In a terminal: <Command text={command} />
        </footer>
      )}
    </div>
  );
}
