import { render } from 'preact';
import { App } from './app/app.tsx';
import { keepNamespaceInLinks } from './app/namespace-links.ts';
import { applyTheme, storedTheme } from './app/theme.ts';
import './styles/base.css';

applyTheme(storedTheme());
keepNamespaceInLinks();
render(<App />, document.getElementById('app')!);
