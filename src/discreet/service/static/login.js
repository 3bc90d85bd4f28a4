// A link may carry the token behind the #, which no server and no log ever sees. A tab that
// already shows this page does not load it again for another link.
function follow() {
  const secret = location.hash.slice(1);
  if (!secret) return;
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("token").value = decodeURIComponent(secret);
  document.getElementById("login").requestSubmit();
}

addEventListener("hashchange", follow);
follow();
